"""The commands sweep and tune."""

import argparse
import math
import os
import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from mpifed.cli.main import say
from mpifed.cli.run import read_study
from mpifed.core.errors import UserError, format_count, to_one_line
from mpifed.core.files import replace_file
from mpifed.core.roles import TEST, TRAINING, Role
from mpifed.core.toml import to_toml, toml_value
from mpifed.features.stop import StopRules
from mpifed.mpi import launcher
from mpifed.mpi.world import World
from mpifed.report.tables import ABSENT, Number, ReportTable, terminal
from mpifed.sweeps import grid, measure, runner, search, slurm
from mpifed.sweeps import tune as tuning
from mpifed.sweeps.grid import Point, format_value, parse_pairs
from mpifed.sweeps.runner import CONTINUE, ReportLine, SweepLayout, SweepTally
from mpifed.sweeps.runs import PointRunner, SweepProgress
from mpifed.sweeps.search import read_tables
from mpifed.sweeps.tune import TuningOutcome, TuningPlan


def parse_layout(args: argparse.Namespace, world: World) -> SweepLayout:
    """Return the layout that the options request. UserError where they conflict with each other or the launcher."""
    launched = launcher.read_launcher()[0] is not None
    for name, minimum in (("jobs", 1), ("each", 0)):
        value = getattr(args, name)
        if value is not None and value < minimum:
            raise UserError(f"--{name} {value} is wrong: it must be at least {minimum}")
    if getattr(args, "slurm", False):
        if args.jobs is not None and args.each is not None:
            raise UserError("--jobs and --each do not go together: points run in processes or on groups of ranks")
        return SweepLayout()
    if launched and args.jobs is not None and args.jobs > 1:
        remedy = "say --each 1, which gives every point two ranks, or start without mpirun"
        raise UserError(f"--jobs {args.jobs} is wrong under mpirun: {remedy}")
    if args.each is not None and not launched:
        remedy = "say --jobs N, which runs N points at a time, a process each"
        raise UserError(f"--each {args.each} is wrong without mpirun: {remedy}")
    if args.each is not None and args.each >= world.size:
        raise UserError(f"--each {args.each} is wrong: a group has {args.each + 1} ranks, and there are {world.size}")
    return SweepLayout(args.jobs, args.each)


def sweep(args: argparse.Namespace, world: World) -> int:
    return print_lines(run_sweep(args, world), world.first, world.first and not args.quiet)


def print_lines(lines: Iterable[ReportLine], first: bool, speaks: bool) -> int:
    """Print lines about many runs, failures at the ``first`` rank, others where it ``speaks``; 1 if one failed."""
    failed = False
    for line in lines:
        failed = failed or not line.fine
        if first and not line.fine:
            sys.stderr.write(f"mpifed: {to_one_line(line.text)}\n")
        else:
            say(line.text, speaks)
    return int(failed)


def run_sweep(args: argparse.Namespace, world: World) -> Iterator[ReportLine]:
    """Run a sweep, on every rank, and yield the lines to print."""
    folder = Path(args.output)
    points: list[Point] = []
    with world.agreeing():
        layout = parse_layout(args, world)
        if world.first:
            points = plan_points(args, world)
    if args.slurm:
        size = slurm.ArraySize(args.tasks, args.jobs, args.each, args.whole_node)
        script = slurm.write_script(points, folder, repeat_arguments(args), args.order, size)
        yield ReportLine(f"sbatch {shlex.quote(str(script))}")
        # a note and no error: the nodes may have data that a login node lacks
        try:
            runner.check_data(points)
        except UserError as mistake:
            yield ReportLine(f"on this machine, {mistake}", False)
    elif args.dry_run:
        yield from runner.list_plan(points, folder, args.force)
    else:
        progress = SweepProgress(
            sys.stderr if world.first and not args.quiet else None, [point.cost for point in points]
        )
        yield from runner.sweep(points, folder, world, args.force, progress, layout)


def repeat_arguments(args: argparse.Namespace) -> list[str]:
    """Return the command line with which the tasks of an array job sweep the same points."""
    words = [f"--{key}={value}" for key in ("grid", "zip") for value in getattr(args, key)]
    if args.methods:
        words.append(f"--methods={args.methods}")
    words += [f"--output={args.output}", f"--order={args.order}"]
    if args.force:
        words.append("--force")
    if args.quiet:
        words.append("-q")
    if args.each is not None:
        words.append(f"--each={args.each}")
    return [*args.study, *words]


def plan_points(args: argparse.Namespace, world: World) -> list[Point]:
    if (args.part or args.dry_run) if args.slurm else args.tasks is not None or args.whole_node:
        raise UserError("--tasks and --whole-node go with --slurm, and --part and --dry-run do not")
    words = [word for word in args.study if "=" in word]
    table = read_study([word for word in args.study if "=" not in word])
    axes = list(args.grid)
    if args.methods:
        axes.append("algorithm=" + ",".join(toml_value(table) for _, table in read_tables(args.methods)))
    points = grid.order_points(grid.points(table, words, axes, args.zip), args.order, args.part)
    # with --dry-run and --slurm this process has not connected to its ranks, but the launcher knows their number
    grid.check_ranks(points, max(world.size, launcher.read_launcher()[0] or 1) if args.each is None else args.each + 1)
    return points


def tune(args: argparse.Namespace, world: World) -> int:
    return print_lines(run_tuning(args, world), world.first, world.first)


def run_tuning(args: argparse.Namespace, world: World) -> Iterator[ReportLine]:
    """Run the settings, on every rank, and yield the lines to print."""
    plan: TuningPlan | None = None
    points: list[Point] = []
    folder = Path(args.output)
    with world.agreeing():
        layout = parse_layout(args, world)
        if world.first:
            plan = make_plan(args)
            points = list(tuning.plan_points(plan).values())
    progress = SweepProgress(sys.stderr if world.first and not args.quiet else None, [point.cost for point in points])
    tally = SweepTally(points, progress)
    for line in tuning.tune(points, PointRunner(folder, world, args.force, progress), layout, tally):
        if not (line.fine and args.quiet) or line.text.endswith(CONTINUE):
            yield line
    if plan is not None and tally.complete:
        outcomes = tuning.best_settings(plan, folder)
        yield ReportLine(result_table(outcomes, plan))
        yield from write_best(args, plan, outcomes, folder)


def make_plan(args: argparse.Namespace) -> TuningPlan:
    if args.runs < 1:
        raise UserError(f"--runs {args.runs} is wrong: it must be at least 1")
    study = read_study(args.study)
    methods = search.read_methods(args.methods, args.runs) if args.methods else []
    methods += [search.parse_method(text, args.runs, len(methods) + k) for k, text in enumerate(args.method)]
    if not methods:
        raise UserError("tune needs --method 'NAME KEY=VALUES', for example --method 'fedgia t=0.001..1 k0=1,5,10'")
    # methods are validated with their own tables: the study alone may ask for things that the default method cannot do
    goal = measure.parse_measure(args.measure, StopRules.build(study.get("stop", {}), "stop"))
    seeds = [value for _, value in parse_pairs(f"seeds={args.seeds}", "--seeds")]
    if not all(seed.isdecimal() for seed in seeds):
        raise UserError(f"--seeds {args.seeds} is wrong: write whole numbers, such as 100:103 or 1,2,3")
    distinct = list(dict.fromkeys(map(int, seeds)))
    return TuningPlan(study, methods, distinct, goal, "median" if args.median else "mean")


def result_table(outcomes: list[TuningOutcome], plan: TuningPlan) -> str:
    """Return a table: method, settings tried, the best of them, its measure, and remarks."""
    rows: list[list[str | Number]] = []
    for label, tried, best, edges in outcomes:
        remarks = list(edges)
        if best.seeds_reached < len(best.scores):
            remarks.insert(0, f"{best.seeds_reached} of {len(best.scores)} seeds get there")
        if diverged := sum(one.diverged > 0 for one in tried):
            remarks.append(f"{diverged} settings diverged")
        if unfinished := sum(one.unfinished for one in tried):
            remarks.append(f"did not finish and count as never there: {format_count(unfinished, 'run')}")
        value = best.middle.value * plan.measure.factor
        number = Number(value, best.sd) if math.isfinite(value) else ABSENT
        words = " ".join(f"{key}={format_value(value)}" for key, value in best.setting.options.items())
        rows.append([label, str(len(tried)), words, number, "; ".join(remarks)])
    heads = ["method", "tried", "best", plan.measure.text, ""]
    text = terminal(ReportTable([(head, head) for head in heads], heads, rows, [1.0] * len(heads)))
    return "\n\n".join([text, *evaluated_on(role for one in outcomes for tried in one.trials for role in tried.roles)])


def evaluated_on(roles: Iterable[Role]) -> Iterator[str]:
    """Yield sentences on the samples of the measure, and the clients that have none."""
    used = set(roles)
    for name in dict.fromkeys(role.name for role in used):
        why = {
            TRAINING: ", for no client has others",
            TEST: ', for stop.by = "test"; what is best by them is no report',
        }
        yield f"by {name} samples{why.get(name, '')}"
        if missing := max(role.missing for role in used if role.name == name):
            yield f"without the clients that have no {name} samples, at most {missing:,}"


def write_best(
    args: argparse.Namespace, plan: TuningPlan, outcomes: list[TuningOutcome], folder: Path
) -> Iterator[ReportLine]:
    """Write the best settings as methods; yield a line with the next command."""
    path = folder / "best.toml"
    heading = f"# Best of {len(plan.seeds)} seeds by {plan.middle} {plan.measure.text}\n"
    tables = [{"label": one.label} | one.best.setting.algorithm for one in outcomes]
    text = "\n\n".join(f"[[method]]\n{to_toml(table, 'method')}" for table in tables)
    with replace_file(path, True) as part:
        part.write_text(f"{heading}\n{text}\n", "utf-8")
    words = shlex.join([*args.study, "--methods", os.fspath(path)])
    yield ReportLine(f"\nwritten to {path}; to compare: python -m mpifed sweep {words} --grid seed=0:10 -o compared")
