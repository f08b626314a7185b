"""The command tune."""

import argparse
import math
import os
import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from mpifed.cli.run import read_study
from mpifed.cli.sweep import parse_layout, print_lines
from mpifed.core.errors import UserError, format_count
from mpifed.core.files import replace_file
from mpifed.core.roles import TRAINING, Role
from mpifed.core.toml import to_toml
from mpifed.features.stop import StopRules
from mpifed.mpi.world import World
from mpifed.report.tables import ABSENT, Number, ReportTable, terminal
from mpifed.sweeps import measure, search
from mpifed.sweeps import tune as tuning
from mpifed.sweeps.grid import Point, format_value, parse_pairs
from mpifed.sweeps.runner import CONTINUE, ReportLine, SweepTally
from mpifed.sweeps.runs import PointRunner, SweepProgress
from mpifed.sweeps.tune import TuningOutcome, TuningPlan


def tune(args: argparse.Namespace, world: World) -> int:
    return print_lines(run_tuning(args, world), world.first, world.first)


def run_tuning(args: argparse.Namespace, world: World) -> Iterator[ReportLine]:
    """Run the settings, on every rank, and yield the lines to print."""
    plan: TuningPlan | None = None
    points: list[Point] = []
    folder = Path(args.output)
    with world.agreeing():
        layout_ = parse_layout(args, world)
        if world.first:
            plan = make_plan(args)
            points = list(tuning.plan_points(plan).values())
    progress = SweepProgress(sys.stderr if world.first and not args.quiet else None, [point.cost for point in points])
    tally = SweepTally(points, progress)
    for line in tuning.tune(points, PointRunner(folder, world, args.force, progress), layout_, tally):
        if not (line.fine and args.quiet) or line.text.endswith(CONTINUE):
            yield line
    if plan is not None and tally.complete:
        outcomes = tuning.best_settings(plan, folder)
        yield ReportLine(result_table(outcomes, plan))
        yield from write_best(args, plan, outcomes, folder)


def make_plan(args: argparse.Namespace) -> TuningPlan:
    if args.runs < 1:
        raise UserError(f"--runs {args.runs} is wrong: it must be at least 1")
    result_table = read_study(args.study)
    methods = search.read_methods(args.methods, args.runs) if args.methods else []
    methods += [search.parse_method(text, args.runs, len(methods) + k) for k, text in enumerate(args.method)]
    if not methods:
        raise UserError("tune needs --method 'NAME KEY=VALUES', for example --method 'fedgia t=0.001..1 k0=1,5,10'")
    # methods are validated with their own tables: the study alone may ask for things that the default method cannot do
    goal = measure.parse_measure(args.measure, StopRules.build(result_table.get("stop", {}), "stop"))
    seeds = [value for _, value in parse_pairs(f"seeds={args.seeds}", "--seeds")]
    if not all(seed.isdecimal() for seed in seeds):
        raise UserError(f"--seeds {args.seeds} is wrong: write whole numbers, such as 100:103 or 1,2,3")
    distinct = list(dict.fromkeys(map(int, seeds)))
    return TuningPlan(result_table, methods, distinct, goal, "median" if args.median else "mean")


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
    """Yield sentences on the samples of the measure, where these are not test samples of all clients."""
    used = set(roles)
    if any(role.name == TRAINING for role in used):
        yield "by training samples, for no client has test samples"
    if missing := max((role.missing for role in used), default=0):
        yield f"without the clients that have no test samples, at most {missing:,}"


def write_best(
    args: argparse.Namespace, plan: TuningPlan, outcomes: list[TuningOutcome], folder: Path
) -> Iterator[ReportLine]:
    """Write the best settings as methods; yield a line with the next command."""
    path = folder / "best.toml"
    heading = f"# Best of {len(plan.seeds)} seeds by {plan.middle} {plan.measure.text}\n"
    tables = [{"label": one.label} | one.best.setting.algorithm for one in outcomes]
    text = "\n\n".join(f"[[method]]\n{to_toml(result_table, 'method')}" for result_table in tables)
    with replace_file(path, True) as part:
        part.write_text(f"{heading}\n{text}\n", "utf-8")
    words = shlex.join([*args.study, "--methods", os.fspath(path)])
    yield ReportLine(f"\nwritten to {path}; to compare: python -m mpifed sweep {words} --grid seed=0:10 -o compared")
