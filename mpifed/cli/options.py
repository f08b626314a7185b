"""The command line: the commands, their options and help texts."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from mpifed.core.errors import UserError

COMMANDS = ("run", "resume", "sweep", "show", "compare", "plot", "list", "describe", "data")
OVERRIDING = {"run": "study", "sweep": "study", "resume": "overrides"}  # command -> where its overrides KEY=VALUE go
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
    """A parser that raises UserError for a wrong command line."""

    def error(self, message: str) -> Any:
        raise UserError(message.replace("argument command: ", ""))


def parse(words: Sequence[str]) -> argparse.Namespace:
    """The arguments on a command line; without a command, those of ``run``. UserError where they are wrong."""
    if not words or (words[0] not in COMMANDS and words[0] not in ("-h", "--help", "--version")):
        words = ["run", *words]
    args, more = parser().parse_known_args(words)
    if more:  # overrides after an option
        if args.command not in OVERRIDING or not all("=" in word and word[0] != "-" for word in more):
            raise UserError(f"unrecognized arguments: {' '.join(more)}")
        vars(args)[OVERRIDING[args.command]] += more
    return args


def parser() -> argparse.ArgumentParser:
    top = Parser(
        prog="python -m mpifed",
        description="Federated optimisation on an MPI cluster.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="store_true", help="print the versions of mpifed and its libraries")
    commands = top.add_subparsers(dest="command", metavar="command", parser_class=Parser)
    run_options(commands)
    sweep_options(commands)
    show = commands.add_parser("show", help="summarise result files")
    show.add_argument("result", nargs="+", help="result files")
    compare_options(commands)
    plot_options(commands)
    names = commands.add_parser("list", help="list what an experiment file can name")
    names.add_argument("kind", nargs="?", help="algorithms, problems, data, partitions or selections")
    one = commands.add_parser("describe", help="formula, options and source of an algorithm, a problem …")
    one.add_argument("name")
    data = commands.add_parser("data", help="download a data set (get) or describe a data file (info)")
    data.add_argument("action", choices=("get", "info"))
    data.add_argument("name", help="get: a data set; info: a data file or data set")
    data.add_argument("--to", default=".", help="folder to download into (default: the current one)")
    return top


def run_options(commands: Any) -> None:
    """The commands run and resume."""
    run = commands.add_parser(
        "run",
        help="run an experiment (the default command)",
        description="Run an experiment file with overrides; every key has a default.",
    )
    study(run)
    run.add_argument("-o", "--output", help="result file (default: mpifed-<algorithm>-<data>-<n>.h5)")
    run.add_argument("--force", action="store_true", help="overwrite the result file")
    resume = commands.add_parser(
        "resume",
        help="continue from the last checkpoint of a result file",
        description="Continue a run, with the same bits; only rounds, stop and checkpoint may change.",
    )
    resume.add_argument("result", help="result file of a run that was stopped, killed or failed")
    resume.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="rounds=2000, stop.seconds=600 …")
    for one in (run, resume):
        one.add_argument("-q", "--quiet", action="store_true", help="print neither progress nor summary")
        one.add_argument("-v", "--verbose", action="store_true", help="print the complete configuration first")
        one.add_argument(
            "--survive", action="store_true", help="continue when client ranks die (Open MPI's mpirun --with-ft ulfm)"
        )


def study(command: Any) -> None:
    command.add_argument(
        "study", nargs="*", metavar="study.toml | KEY=VALUE", help="experiment file, then overrides: algorithm.k0=5"
    )


def sweep_options(commands: Any) -> None:
    """The command sweep."""
    sweep = commands.add_parser(
        "sweep",
        help="many runs in one launch, each with a result file",
        description="Run every combination of the values given. The same command again skips the runs that finished.",
    )
    study(sweep)
    sweep.add_argument(
        "--grid",
        action="append",
        default=[],
        metavar="KEY=VALUES",
        help="values with commas, or a range a:b or a:b:step without b: algorithm.k0=1,5,10 seed=0:20",
    )
    sweep.add_argument(
        "--zip", action="append", default=[], metavar="KEY=VALUES;KEY=VALUES", help="keys that change together"
    )
    sweep.add_argument(
        "-o", "--output", default="results", metavar="FOLDER", help="folder of results (default: results)"
    )
    sweep.add_argument(
        "--order", choices=("cost", "grid"), default="cost", help="cheapest first (default), or the order of the grids"
    )
    sweep.add_argument("--part", metavar="I/N", help="only the points I, I + N, I + 2N … of that order, counted from 0")
    sweep.add_argument("--dry-run", action="store_true", help="print what would be run, and run nothing")
    sweep.add_argument(
        "--slurm", action="store_true", help="write sweep.sbatch, an array job, into the folder; run nothing"
    )
    sweep.add_argument("--tasks", type=int, metavar="N", help="tasks of the array job (default: by estimated cost)")
    sweep.add_argument("--force", action="store_true", help="overwrite results of other configurations")
    sweep.add_argument("-q", "--quiet", action="store_true", help="print only failures")


def compare_options(commands: Any) -> None:
    """The command compare."""
    compare = commands.add_parser(
        "compare",
        help="runs in a table, mean ± sd over seeds",
        description="One row for all runs that differ in the seed alone, headed by the settings in which rows differ.",
    )
    compare.add_argument("result", nargs="+", help="result files")
    compare.add_argument(
        "--by", default="seed", metavar="KEYS", help="settings to take means over, or none (default: seed)"
    )
    compare.add_argument("--columns", metavar="NAMES", help="objective,rounds,tct,lct,bytes … or any recorded column")
    compare.add_argument("--format", default="terminal", help="terminal, markdown, latex or csv")
    compare.add_argument("--sort", metavar="COLUMN", help="a setting, from small to large, or a column, best first")
    compare.add_argument("--all", action="store_true", help="count runs that did not finish too")


def plot_options(commands: Any) -> None:
    """The command plot."""
    plot = commands.add_parser(
        "plot",
        help="pictures of runs",
        description="Curves of recorded columns; runs that differ in the seed alone are one curve with a band.",
    )
    plot.add_argument("result", nargs="+", help="result files")
    plot.add_argument(
        "--x", help="round (default), exchanges, bytes, bytes_up, seconds, simulated_seconds or any column"
    )
    plot.add_argument("--y", action="append", help="columns, one panel each (default: objective); error: f − f*")
    plot.add_argument("--log", help="logarithmic axes: x, y, xy or none (default: y where values span two decades)")
    plot.add_argument("--box", metavar="KEY", help="boxes of the final value of y over a setting: algorithm.k0")
    plot.add_argument("--all", action="store_true", help="boxes of runs that did not finish too")
    plot.add_argument("--timeline", action="store_true", help="where the time of one run went, by round and by rank")
    plot.add_argument("--page", action="store_true", help="objective, error and accuracy by rounds, bytes, seconds")
    plot.add_argument("--width", metavar="INCHES", help="single (3.4), double (7) or inches")
    plot.add_argument("--title", help="title of the picture")
    plot.add_argument("-o", "--output", default="figure.png", help="picture: .png, .pdf or .svg (default: figure.png)")
    plot.add_argument("--force", action="store_true", help="overwrite the picture")
