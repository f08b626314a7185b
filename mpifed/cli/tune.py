"""The command tune."""

import argparse
import math
import os
import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from mpifed.cli.run import study
from mpifed.cli.sweep import layout, tell
from mpifed.core.errors import UserError, counted
from mpifed.core.files import replacing
from mpifed.core.roles import TRAINING, Role
from mpifed.core.toml import to_toml
from mpifed.features.stop import Stop
from mpifed.mpi.world import World
from mpifed.report.tables import ABSENT, Number, Table, terminal
from mpifed.sweeps import measure, search
from mpifed.sweeps import tune as tuning
from mpifed.sweeps.grid import Point, bare, pairs
from mpifed.sweeps.runner import CONTINUE, Line, Tally
from mpifed.sweeps.runs import Overall, Runs
from mpifed.sweeps.tune import Outcome, Plan


def tune(args: argparse.Namespace, world: World) -> int:
    return tell(tuned(args, world), world.first, world.first)


def tuned(args: argparse.Namespace, world: World) -> Iterator[Line]:
    """Carry out the runs, on every rank, and yield the lines to print."""
    plan: Plan | None = None
    points: list[Point] = []
    folder = Path(args.output)
    with world.agreeing():
        shape = layout(args, world)
        if world.first:
            plan = planned(args)
            points = list(tuning.points(plan).values())
    progress = Overall(sys.stderr if world.first and not args.quiet else None, [point.cost for point in points])
    tally = Tally(points, progress)
    for line in tuning.tune(points, Runs(folder, world, args.force, progress), shape, tally):
        if not (line.fine and args.quiet) or line.text.endswith(CONTINUE):
            yield line
    if plan is not None and tally.complete:
        found = tuning.outcomes(plan, folder)
        yield Line(table(found, plan))
        yield from written(args, plan, found, folder)


def planned(args: argparse.Namespace) -> Plan:
    if args.runs < 1:
        raise UserError(f"--runs {args.runs} is wrong: it must be at least 1")
    table = study(args.study)
    methods = search.from_file(args.methods, args.runs) if args.methods else []
    methods += [search.from_text(text, args.runs, len(methods) + k) for k, text in enumerate(args.method)]
    if not methods:
        raise UserError("tune needs --method 'NAME KEY=VALUES', for example --method 'fedgia t=0.001..1 k0=1,5,10'")
    # each method is judged with its own table: the study alone may ask for what the default method cannot do
    measured = measure.parsed(args.measure, Stop.build(table.get("stop", {}), "stop"))
    seeds = [value for _, value in pairs(f"seeds={args.seeds}", "--seeds")]
    if not all(seed.isdecimal() for seed in seeds):
        raise UserError(f"--seeds {args.seeds} is wrong: write whole numbers, such as 100:103 or 1,2,3")
    distinct = list(dict.fromkeys(map(int, seeds)))
    return Plan(table, methods, distinct, measured, "median" if args.median else "mean")


def table(found: list[Outcome], plan: Plan) -> str:
    """Method, number of settings tried, the best of them, its measure, and what to know about it."""
    rows: list[list[str | Number]] = []
    for label, tried, best, edges in found:
        remarks = list(edges)
        if best.reached < len(best.scores):
            remarks.insert(0, f"{best.reached} of {len(best.scores)} seeds get there")
        if diverged := sum(one.diverged > 0 for one in tried):
            remarks.append(f"{diverged} settings diverged")
        if unfinished := sum(one.unfinished for one in tried):
            remarks.append(f"did not finish and count as never there: {counted(unfinished, 'run')}")
        value = best.middle.value * plan.measure.factor
        number = Number(value, best.sd) if math.isfinite(value) else ABSENT
        words = " ".join(f"{key}={bare(value)}" for key, value in best.setting.options.items())
        rows.append([label, str(len(tried)), words, number, "; ".join(remarks)])
    heads = ["method", "tried", "best", plan.measure.text, ""]
    text = terminal(Table([(head, head) for head in heads], heads, rows, [1.0] * len(heads)))
    return "\n\n".join([text, *evaluated_on(role for one in found for tried in one.tried for role in tried.roles)])


def evaluated_on(roles: Iterable[Role]) -> Iterator[str]:
    """Sentences on the samples that the measure is over, where these are not test samples of all clients."""
    there = set(roles)
    if any(role.name == TRAINING for role in there):
        yield "by training samples, for no client has test samples"
    if most := max((role.missing for role in there), default=0):
        yield f"without the clients that have no test samples, at most {most:,}"


def written(args: argparse.Namespace, plan: Plan, found: list[Outcome], folder: Path) -> Iterator[Line]:
    """Write the best settings as methods, and say how to go on."""
    path = folder / "best.toml"
    heading = f"# Best of {len(plan.seeds)} seeds by {plan.middle} {plan.measure.text}\n"
    tables = [{"label": one.label} | one.best.setting.algorithm for one in found]
    text = "\n\n".join(f"[[method]]\n{to_toml(table, 'method')}" for table in tables)
    with replacing(path, True) as part:
        part.write_text(f"{heading}\n{text}\n", "utf-8")
    words = shlex.join([*args.study, "--methods", os.fspath(path)])
    yield Line(f"\nwritten to {path}; to compare: python -m mpifed sweep {words} --grid seed=0:10 -o compared")
