"""The commands of `python -m mpifed`: who carries them out, what they print, and the exit codes."""

import argparse
import importlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from mpifed.cli.options import RUNS, WITHOUT_RANKS, parse
from mpifed.core.deprecated import OldName
from mpifed.core.errors import RunError, UserError, printable, sentence
from mpifed.mpi.launcher import announced, connect
from mpifed.mpi.world import World

BOLD = ("\033[1m", "\033[0m")  # begins and ends what a terminal prints in bold
BOLD_PARTS = re.compile("(" + "|".join(map(re.escape, BOLD)) + ")")


def main(arguments: Sequence[str] | None = None, connected: Callable[[], None] | None = None) -> int:
    """Run a command; its exit code: 0 done, 1 failed while running, 2 wrong input.

    ``connected`` is called by a command that uses ranks, once these are there.
    """
    # a launcher may start a command that needs no ranks: then one process carries it out, and the others are silent
    speaks = announced()[1] == 0
    world = World()
    with old_names(speaks):
        return carried_out(arguments, world, speaks, connected)


@contextmanager
def old_names(speaks: bool) -> Iterator[None]:
    """Warnings of old names as sentences, of one rank and without the line of the program that warns."""
    with warnings.catch_warnings():
        usual = warnings.showwarning

        def show(message: Any, category: type[Warning], *where: Any, **options: Any) -> None:
            if not issubclass(category, OldName):
                usual(message, category, *where, **options)
            elif speaks:
                sys.stderr.write(f"mpifed: {sentence(message)}\n")

        warnings.showwarning = show
        yield


def carried_out(
    arguments: Sequence[str] | None, world: World, speaks: bool, connected: Callable[[], None] | None
) -> int:
    try:
        args = parse(sys.argv[1:] if arguments is None else arguments)
        if uses_ranks(args):
            world = connect()
            if connected is not None:
                connected()
        return command(args, world) if speaks or uses_ranks(args) else 0
    except UserError as mistake:
        if speaks:
            sys.stderr.write(f"mpifed: {sentence(mistake)}\n")
        return 2
    except RunError as trouble:
        if speaks:
            sys.stderr.write("mpifed: " + printable(f"{trouble}\n", keep="\n"))
        return 1
    except KeyboardInterrupt:
        world.abort(1)
        return 1
    except BrokenPipeError:
        return 1
    except BaseException as error:  # also what is no Exception, such as asyncio's CancelledError
        if type(error) is SystemExit and world.size == 1:  # of --help, or of a class of the user's
            raise
        from mpifed.experiment.run import fail

        fail(world, error)
        return 1


def uses_ranks(args: argparse.Namespace) -> bool:
    return args.command in RUNS and not any(getattr(args, option, False) for option in WITHOUT_RANKS)


def command(args: argparse.Namespace, world: World) -> int:
    file, _, name = args.act.partition(":")
    act = getattr(importlib.import_module(f"mpifed.cli.{file}"), name)
    if args.command in RUNS:
        return act(args, world)
    try:
        say(act(args))
    except Mistakes as found:
        say(str(found))
        return 1
    return 0


class Mistakes(Exception):
    """What a command prints that has found mistakes, which is its exit code 1."""


def say(text: str, speaks: bool = True) -> None:
    """Print lines where ``speaks``; control characters are escaped, but for those that print a number in bold."""
    if speaks:
        print("".join(part if part in BOLD else printable(part, "\n") for part in BOLD_PARTS.split(text)), flush=True)
