"""The commands of `python -m mpifed`. The only module that prints, and only on rank 0."""

from __future__ import annotations

import argparse
import copy
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mpifed.cli.commands import compare, plot, swept
from mpifed.cli.options import parse
from mpifed.core.errors import Trouble, UserError, printable, sentence
from mpifed.experiment.progress import Progress
from mpifed.mpi.launcher import announced, connect
from mpifed.mpi.world import World

if TYPE_CHECKING:
    from mpifed.experiment.checkpoint import Saved
    from mpifed.results.result import Result


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; its exit code: 0 done, 1 failed while running, 2 wrong input."""
    speaks = announced()[1] == 0
    world = World()
    try:
        args = parse(sys.argv[1:] if arguments is None else arguments)
        if uses_ranks(args):
            world = connect()
        return command(args, world) if speaks or uses_ranks(args) else 0
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


def uses_ranks(args: argparse.Namespace) -> bool:
    """Whether all ranks carry out a command together; the others are for rank 0 alone."""
    return args.command in ("run", "resume") or (args.command == "sweep" and not (args.dry_run or args.slurm))


def command(args: argparse.Namespace, world: World) -> int:
    """Carry out a command; its exit code."""
    if args.command in ("run", "resume"):
        return run(args, world)
    if args.command == "sweep":
        return sweep(args, world)
    say(answer(args), keep="\n\033" if args.command == "compare" else "\n")
    return 0


def run(args: argparse.Namespace, world: World) -> int:
    """The commands run and resume, on every rank; rank 0 reads the files."""
    from mpifed.experiment.job import Job
    from mpifed.experiment.run import build, start

    table: dict[str, Any] = {}
    path, saved, before = "", None, None
    with world.agreeing():
        if world.first:
            table, path, saved, before = continued(args) if args.command == "resume" else begun(args)
    table, path, saved = world.share((table, path, saved))
    config = build(table, world)
    loud = world.first and not args.quiet
    if args.verbose and loud:
        say(config.toml() + "\n")
    progress = Progress(sys.stderr if loud else None)
    if args.command == "resume":
        found = "has no checkpoint: starting again" if saved is None else f"continues after round {saved.round}"
        progress.note(f"{path} {found}")
    force = args.command == "resume" or args.force
    recorder = start(Job(config, path, force, saved, before, args.survive), world, progress)
    if recorder is not None and loud:
        from mpifed.report.summary import show

        say(show(recorder.result()))
        say(f"\nwritten to {path}")
    return 0


def begun(args: argparse.Namespace) -> tuple[dict[str, Any], str, None, None]:
    """The table of a new run, and the path of its result."""
    from mpifed.experiment.config import experiment

    table = study(args.study)
    config = experiment(table)
    return table, free_name(config) if args.output is None else args.output, None, None


def continued(args: argparse.Namespace) -> tuple[dict[str, Any], str, Saved | None, Result | None]:
    """The table of a resumed run, its path, checkpoint and result so far; the latter None if it has no checkpoint."""
    from mpifed.experiment.resume import resume

    table, saved, before = resume(args.result, args.overrides)
    return table, args.result, saved, None if saved is None else before


def sweep(args: argparse.Namespace, world: World) -> int:
    """The command sweep, on every rank; 1 if a point failed."""
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
        raise UserError(f"a run has one experiment file, not {len(files)}: {', '.join(files)}; overrides are KEY=VALUE")
    table = configuration.read(files[0]) if files else copy.deepcopy(configuration.DEFAULT_STUDY)
    return configuration.override(table, [word for word in words if "=" in word])


def answer(args: argparse.Namespace) -> str:
    """What the commands show, compare, plot, list, describe and data print, and --version."""
    if args.command == "show":
        from mpifed.report.summary import show
        from mpifed.results.result import load

        return "\n\n".join(show(load(path)) for path in args.result)
    if args.command == "compare":
        return compare(args, bold=sys.stdout.isatty())
    if args.command == "plot":
        return plot(args)
    from mpifed.cli import describe

    if args.version:
        return describe.versions()
    if args.command == "list":
        return describe.names(args.kind)
    if args.command == "describe":
        return describe.component(args.name)
    return describe.data(args.action, args.name, Path(args.to))


def free_name(config: Any) -> str:
    """mpifed-<algorithm>-<data>-<n>.h5 with the first n for which there is no file."""
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
