"""The command line: the commands, their options and help texts."""

import argparse
import re
from collections.abc import Mapping, Sequence
from typing import Any

from mpifed.cli.arguments import EVERY
from mpifed.cli.mistakes import refuse_command, refuse_options
from mpifed.core.errors import UserError

RUNS = ("run", "resume", "sweep", "tune")  # a signal lets these finish the round that they are in
COMMANDS = tuple(name for name, *_ in EVERY)
WITHOUT_RANKS = ("dry_run", "slurm")  # options of sweep with which nothing runs
ABOUT = ("-h", "--help", "--version")  # options that stand in the place of a command
NEEDED = {  # command -> what it cannot do without, for example
    **dict.fromkeys(("resume", "show"), "out.h5"),
    **dict.fromkeys(("compare", "plot"), "results/*.h5"),
    "check": "my_methods.py:MyMethod",
    "describe": "fedgia",
    "data": "info digits",
    "completion": "bash",
}
EXAMPLES = """examples:
  mpirun -n 5 python -m mpifed                          the default study: FedGiA, Example V.1, 128 clients
  mpirun -n 5 python -m mpifed run study.toml algorithm.k0=5 -o out.h5
  python -m mpifed run algorithm=fedadmm data=qot       without MPI: server and clients in one process
  mpirun -n 5 python -m mpifed resume out.h5 rounds=2000
  mpirun -n 5 python -m mpifed sweep study.toml --grid algorithm.k0=1,5,10 --grid seed=0:20 -o results
  python -m mpifed tune study.toml --method 'fedgia t=0.001..1 k0=1,5' --method fedavg -j 2
  python -m mpifed show out.h5                          configuration, outcome, counters, timers
  python -m mpifed compare results/*.h5                 a table, mean ± sd over seeds
  python -m mpifed certify study.toml algorithm.t=6     the conditions of the method's theorem, both sides
  python -m mpifed fit out.h5                           coefficients, standard errors, p, distance from the optimum
  python -m mpifed check my_methods.py:MyMethod         a class of yours against what it says of itself
  python -m mpifed plot results/*.h5 --x bytes --y error -o figure.pdf
  python -m mpifed list algorithms
  python -m mpifed describe fedgia                      formula, options, defaults, source
"""


def runs(words: Sequence[str]) -> bool:
    """Whether a command line starts runs. It is asked before anything else is imported, so it does not parse."""
    nothing = {f"--{option.replace('_', '-')}" for option in WITHOUT_RANKS}
    others = {*COMMANDS, *ABOUT} - {*RUNS}
    return not words or (words[0] not in others and not nothing.intersection(words))


class Parser(argparse.ArgumentParser):
    """A parser that raises UserError for a wrong command line."""

    commands: Mapping[str, argparse.ArgumentParser]  # of the topmost one

    def error(self, message: str) -> Any:
        number = re.fullmatch(r"argument (?:\S+/)?(--\S+): invalid int value: '(.*)'", message)
        if number:
            raise UserError(f"{number[1]} {number[2]} is wrong: it must be a whole number")
        missing = re.fullmatch(r"the following arguments are required: ([^,|]*).*", message)
        if missing:
            command = self.prog.rpartition(" ")[2]
            what = {"result": "a result file", "action": "get or info", "my.py:Class": "a class"}
            raise UserError(
                f"{command} needs {what.get(missing[1], f'a {missing[1]}')}, as in: {self.prog} {NEEDED[command]}"
            )
        raise UserError(message.replace("argument command: ", "").removesuffix(", KEY=VALUE"))


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The arguments on a command line; without a command, those of ``run``. UserError where they are wrong."""
    if not words or words[0] not in (*COMMANDS, *ABOUT):
        if words and not words[0].startswith("-"):
            refuse_command(words[0], COMMANDS)
        words = ["run", *words]
    known = parser()
    # argparse gives all words before the first option to ``study``, and those behind options to nobody
    args, more = known.parse_known_args(words)
    if more:
        place = "study" if hasattr(args, "study") else "overrides"
        if not hasattr(args, place) or not all("=" in word and word[0] != "-" for word in more):
            options = known.commands[args.command]._option_string_actions if args.command else ()
            refuse_options(more, words, args.command, options)
        vars(args)[place] += more
    return args


def parser() -> Parser:
    top = Parser(
        prog="python -m mpifed",
        description="Federated optimisation on an MPI cluster.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="store_true", help="print the versions of mpifed and its libraries")
    top.set_defaults(act="describe:versions", parser=top)
    commands = top.add_subparsers(dest="command", metavar="command", parser_class=Parser)
    for name, act, help, options in EVERY:
        command = commands.add_parser(name, help=help, description=options.__doc__)
        command.set_defaults(act=act)
        options(command.add_argument)
    top.commands = commands.choices
    return top
