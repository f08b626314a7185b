"""The commands of `python -m mpifed`: dispatch, output and exit codes."""

import argparse
import importlib
import re
import sys
from collections.abc import Callable, Sequence

from mpifed.cli.arguments import RUNS, WITHOUT_RANKS, parse
from mpifed.core.errors import RunError, UserError, escape_unprintable, to_one_line
from mpifed.mpi.launcher import connect_ranks, read_launcher
from mpifed.mpi.world import World

BOLD = ("\033[1m", "\033[0m")  # begin and end of bold text in a terminal
BOLD_PARTS = re.compile("(" + "|".join(map(re.escape, BOLD)) + ")")


def main(arguments: Sequence[str] | None = None, connected: Callable[[], None] | None = None) -> int:
    """Run a command and return its exit code: 0 done, 1 failed while running, 2 wrong input.

    ``connected`` is called by a command that uses ranks, once they are connected.
    """
    # a launcher may start a command that needs no ranks: then one process runs it, and the others are silent
    speaks = read_launcher()[1] == 0
    world = World()
    return run_command(arguments, world, speaks, connected)


def run_command(
    arguments: Sequence[str] | None, world: World, speaks: bool, connected: Callable[[], None] | None
) -> int:
    """Run a command and turn errors into messages and exit codes."""
    try:
        args = parse(sys.argv[1:] if arguments is None else arguments)
        if uses_ranks(args):
            world = connect_ranks()
            if connected is not None:
                connected()
        return dispatch(args, world) if speaks or uses_ranks(args) else 0
    except UserError as mistake:
        if speaks:
            sys.stderr.write(f"mpifed: {to_one_line(mistake)}\n")
        return 2
    except RunError as trouble:
        if speaks:
            sys.stderr.write("mpifed: " + escape_unprintable(f"{trouble}\n", keep="\n"))
        return 1
    except KeyboardInterrupt:
        world.abort(1)
        return 1
    except BrokenPipeError:
        return 1
    except BaseException as error:  # also what is no Exception, such as asyncio's CancelledError
        if type(error) is SystemExit and world.size == 1:  # from --help, or from a class of the user
            raise
        from mpifed.experiment.run import fail

        fail(world, error)
        return 1


def uses_ranks(args: argparse.Namespace) -> bool:
    return args.command in RUNS and not any(getattr(args, option, False) for option in WITHOUT_RANKS)


def dispatch(args: argparse.Namespace, world: World) -> int:
    """Call the function of a command and print its text; return the exit code."""
    file, _, name = args.act.partition(":")
    function = getattr(importlib.import_module(f"mpifed.cli.{file}"), name)
    if args.command in RUNS:
        return function(args, world)
    try:
        say(function(args))
    except Mistakes as mistakes:
        say(str(mistakes))
        return 1
    return 0


class Mistakes(Exception):
    """The output of a command that has found mistakes; the exit code is 1."""


def say(text: str, speaks: bool = True) -> None:
    """Print lines where ``speaks``; control characters are escaped, except those for bold text."""
    if speaks:
        print(
            "".join(part if part in BOLD else escape_unprintable(part, "\n") for part in BOLD_PARTS.split(text)),
            flush=True,
        )
