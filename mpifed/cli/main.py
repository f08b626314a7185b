"""The commands of `python -m mpifed`: which function carries out which, and the exit codes."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from mpifed.cli.certify import certify
from mpifed.cli.compare import compare, show
from mpifed.cli.data import data
from mpifed.cli.editors import completion, schema
from mpifed.cli.names import names, versions
from mpifed.cli.options import parse, parser
from mpifed.cli.output import say
from mpifed.cli.plot import plot
from mpifed.cli.run import run
from mpifed.cli.sweep import sweep
from mpifed.cli.tune import tune
from mpifed.core.errors import Trouble, UserError, printable, sentence
from mpifed.mpi.launcher import announced, connect
from mpifed.mpi.world import World


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
    return args.command in ("run", "resume", "tune") or (args.command == "sweep" and not (args.dry_run or args.slurm))


def command(args: argparse.Namespace, world: World) -> int:
    """Carry out a command; its exit code."""
    if args.command in ("run", "resume"):
        return run(args, world)
    if args.command == "sweep":
        return sweep(args, world)
    if args.command == "tune":
        return tune(args, world)
    say(answer(args), keep="\n\033" if args.command == "compare" else "\n")
    return 0


def answer(args: argparse.Namespace) -> str:
    """What the commands show, compare, certify, plot, list, describe and data print, and --version."""
    if args.command == "show":
        return show(args)
    if args.command == "compare":
        return compare(args, bold=sys.stdout.isatty())
    if args.command == "certify":
        return certify(args)
    if args.command == "plot":
        return plot(args)
    if args.command == "data":
        return data(args)
    if args.command == "schema":
        return schema(args)
    if args.command == "completion":
        return completion(args, parser())
    return versions() if args.version else names(args)
