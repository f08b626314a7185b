"""The commands; the only file that prints. Rank 0 speaks, the others are silent."""

from __future__ import annotations

import argparse
import copy
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpifed.cli.commands import compare, options, plot, swept
from mpifed.core.errors import Trouble, UserError, printable, sentence
from mpifed.experiment.progress import Progress
from mpifed.mpi.launcher import announced, connect
from mpifed.mpi.world import World

if TYPE_CHECKING:
    from mpifed.experiment.checkpoint import Saved
    from mpifed.results.result import Result

COMMANDS = ("run", "resume", "sweep", "show", "compare", "plot", "list", "describe", "data")
EXAMPLES = """examples:
  mpirun -n 5 python -m mpifed                          the default study: FedGiA, Example V.1, 128 clients
  mpirun -n 5 python -m mpifed run study.toml algorithm.k0=5 -o out.h5
  python -m mpifed run algorithm=fedadmm data=qot       without MPI: server and clients in one process
  mpirun -n 5 python -m mpifed resume out.h5 rounds=2000
  mpirun -n 5 python -m mpifed sweep study.toml --grid algorithm.k0=1,5,10 --grid seed=0:20 -o results
  python -m mpifed show out.h5                          configuration, outcome, counters, timers
  python -m mpifed compare results/*.h5                 a table, mean ± sd over seeds
  python -m mpifed plot results/*.h5 --x bytes --y error -o figure.pdf
  python -m mpifed list algorithms
  python -m mpifed describe fedgia                      formula, options, defaults, source
"""


class Parser(argparse.ArgumentParser):
    def error(self, message: str) -> Any:
        raise UserError(message.replace("argument command: ", ""))


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = Parser(
        prog="python -m mpifed",
        description="Federated optimisation on an MPI cluster.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="store_true", help="versions of mpifed and of what it runs on")
    commands = top.add_subparsers(dest="command", metavar="command", parser_class=Parser)
    run = commands.add_parser(
        "run",
        help="run an experiment (the default command)",
        description="Run an experiment file with overrides; every key has a default.",
    )
    run.add_argument(
        "study", nargs="*", metavar="study.toml | KEY=VALUE", help="experiment file, then overrides: algorithm.k0=5"
    )
    run.add_argument("-o", "--output", help="result file (default: mpifed-<algorithm>-<data>-<n>.h5)")
    run.add_argument("--force", action="store_true", help="overwrite the result file")
    run.add_argument("-q", "--quiet", action="store_true", help="no progress and no summary")
    run.add_argument("-v", "--verbose", action="store_true", help="print the complete configuration first")
    again = commands.add_parser(
        "resume",
        help="go on from the last checkpoint of a result file",
        description="Go on, bit for bit; only rounds, stop and checkpoint may change.",
    )
    again.add_argument("result", help="result file of a run that was stopped, killed or failed")
    again.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="rounds=2000, stop.seconds=600 …")
    again.add_argument("-q", "--quiet", action="store_true", help="no progress and no summary")
    again.add_argument("-v", "--verbose", action="store_true", help="print the complete configuration first")
    for one in (run, again):
        one.add_argument(
            "--survive", action="store_true", help="go on when client ranks die (Open MPI's mpirun --with-ft ulfm)"
        )
    show = commands.add_parser("show", help="what is in a result file")
    show.add_argument("result", nargs="+")
    options(commands)
    some = commands.add_parser("list", help="names an experiment file can use")
    some.add_argument("kind", nargs="?", help="algorithms, problems, data, partitions or selections")
    one = commands.add_parser("describe", help="formula, options and source of one of them")
    one.add_argument("name")
    data = commands.add_parser("data", help="download data (get) or look into a data file (info)")
    data.add_argument("action", choices=("get", "info"))
    data.add_argument("name", help="get: a data set; info: a data file or data set")
    data.add_argument("--to", default=".", help="folder to download into")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 done, 1 failed while running, 2 the user's input was wrong."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    speaks = announced()[1] == 0
    world = World()
    try:
        if not words or (words[0] not in COMMANDS and words[0] not in ("-h", "--help", "--version")):
            words.insert(0, "run")
        args, more = parser().parse_known_args(words)
        if more and (
            args.command not in ("run", "resume", "sweep") or not all("=" in word and word[0] != "-" for word in more)
        ):
            raise UserError(f"unrecognized arguments: {' '.join(more)}")
        if more:
            vars(args)["overrides" if args.command == "resume" else "study"] += more  # overrides after an option
        if args.version:
            from mpifed.cli.describe import versions

            say(versions(), speaks)
        elif args.command in ("run", "resume"):
            world = connect()
            return run(args, world)
        elif args.command == "sweep":
            if args.dry_run or args.slurm:
                return sweep(args, world) if speaks else 0
            world = connect()
            return sweep(args, world)
        elif speaks:
            say(answer(args), keep="\n\033" if args.command == "compare" else "\n")
        return 0
    except UserError as mistake:
        if speaks:
            sys.stderr.write(f"mpifed: {sentence(mistake)}\n")
        return 2
    except Trouble as trouble:
        if speaks:
            sys.stderr.write("mpifed: " + printable(f"{trouble}\n", keep="\n"))
        return 1
    except KeyboardInterrupt:
        world.abort(1)
        return 1
    except BrokenPipeError:
        return 1
    except Exception as error:
        from mpifed.experiment.run import fail

        fail(world, error)
        return 1


def run(args: argparse.Namespace, world: World) -> int:
    """The commands run and resume, on every rank; rank 0 reads the files."""
    from mpifed.experiment.job import Job
    from mpifed.experiment.run import build, start

    table: dict[str, Any] = {}
    path, saved, before = "", None, None
    with world.agreeing():
        if world.first:
            table, path, saved, before = going_on(args) if args.command == "resume" else anew(args)
    table, path, saved = world.share((table, path, saved))
    config = build(table, world)
    loud = world.first and not args.quiet
    if args.verbose and loud:
        say(config.toml() + "\n")
    progress = Progress(sys.stderr if loud else None)
    if args.command == "resume":
        found = "has no checkpoint: it starts again" if saved is None else f"goes on after round {saved.round}"
        progress.note(f"{path} {found}")
    force = args.command == "resume" or args.force
    recorder = start(Job(config, path, force, saved, before, args.survive), world, progress)
    if recorder is not None and loud:
        from mpifed.report.summary import show

        say(show(recorder.result()))
        say(f"\nwritten to {path}")
    return 0


def anew(args: argparse.Namespace) -> tuple[dict[str, Any], str, None, None]:
    """The table of a new run and the path of its result."""
    from mpifed.experiment.config import experiment

    table = study(args.study)
    config = experiment(table)
    return table, free_name(config) if args.output is None else args.output, None, None


def going_on(args: argparse.Namespace) -> tuple[dict[str, Any], str, Saved | None, Result | None]:
    """The table of a run that goes on, its path, its checkpoint and its result so far; both None where it starts again."""
    from mpifed.experiment.resume import resume

    table, saved, before = resume(args.result, args.overrides)
    return table, args.result, saved, None if saved is None else before


def sweep(args: argparse.Namespace, world: World) -> int:
    """The command sweep, on every rank; 1 where a point failed."""
    failed = False
    for line in swept(args, study, world):
        failed = failed or not line.fine
        if world.first and not line.fine:
            sys.stderr.write(f"mpifed: {sentence(line.text)}\n")
        else:
            say(line.text, world.first and not args.quiet)
    return int(failed)


def study(words: Sequence[str]) -> dict[str, Any]:
    """The table of an experiment file and overrides."""
    from mpifed.experiment import config as configuration

    files = [word for word in words if "=" not in word]
    if len(files) > 1:
        raise UserError(
            f"there is one experiment file to a run, not {len(files)}: {', '.join(files)}; overrides are KEY=VALUE"
        )
    table = configuration.read(files[0]) if files else copy.deepcopy(configuration.DEFAULT_STUDY)
    return configuration.override(table, [word for word in words if "=" in word])


def answer(args: argparse.Namespace) -> str:
    """What the commands show, compare, plot, list, describe and data say."""
    if args.command == "show":
        from mpifed.report.summary import show
        from mpifed.results.result import load

        return "\n\n".join(show(load(path)) for path in args.result)
    if args.command == "compare":
        return compare(args, bold=sys.stdout.isatty())
    if args.command == "plot":
        return plot(args)
    from mpifed.cli import describe

    if args.command == "list":
        return describe.names(args.kind)
    if args.command == "describe":
        return describe.component(args.name)
    return describe.data(args.action, args.name, Path(args.to))


def free_name(config: Any) -> str:
    """mpifed-<algorithm>-<data>-<n>.h5 with the first n that is free."""
    n = 1
    while True:
        name = "-".join(
            ["mpifed", *(part.label().rpartition(":")[2] for part in (config.algorithm, config.data)), f"{n}.h5"]
        )
        if not os.path.lexists(name):
            return name
        n += 1


def say(text: str, speaks: bool = True, keep: str = "\n") -> None:
    if speaks:
        print(printable(text, keep), flush=True)
