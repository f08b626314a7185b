"""The command line: the commands with their options and help texts, and the parser.

The functions that carry out commands are named as "file:function"; their files are imported when they are needed, so
that help is there at once.
"""

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from mpifed.cli.mistakes import refuse_command, refuse_options
from mpifed.core.errors import UserError

Add = Callable[..., Any]  # the method add_argument of a parser
AddOptions = Callable[[Add], None]
DATA = "download a data set (get), or describe data and how they are divided among clients (info)"
OVERWRITE = "overwrite results of other configurations"
STUDY = {"nargs": "*", "metavar": "study.toml | KEY=VALUE", "help": "experiment file, then overrides: algorithm.k0=5"}
EVERY: list[tuple[str, str, str, AddOptions]] = []  # name, "file:function" that runs it, help, options
RUNS = ("run", "resume", "sweep", "tune")  # a signal lets these finish the round that they are in
WITHOUT_RANKS = ("dry_run", "slurm")  # with these options of sweep nothing runs
ABOUT = ("-h", "--help", "--version")  # options in place of a command
NEEDED = {  # command -> example of its required arguments
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


def command(name: str, act: str, help: str) -> Callable[[AddOptions], AddOptions]:
    """Register a command: the decorated function adds its options, and its docstring begins the help."""

    def register(add_options: AddOptions) -> AddOptions:
        EVERY.append((name, act, help, add_options))
        return add_options

    return register


@command("run", "run:run", "run an experiment (the default command)")
def run(add: Add) -> None:
    """Run an experiment file with overrides; every key has a default."""
    add("study", **STUDY)
    add("-o", "--output", help="result file (default: mpifed-<algorithm>-<data>-<n>.h5)")
    add("--force", action="store_true", help="overwrite the result file")
    add_run_options(add)


@command("resume", "run:run", "continue from the last checkpoint of a result file")
def resume(add: Add) -> None:
    """Continue a run that was stopped, was killed or failed, or one that is finished, with more rounds or time: the
    bits are those of a run that was not interrupted. Only rounds, stop, reduction, block_bytes, patience and
    checkpoint may change.
    """
    add("result", help="result file of the run")
    add("overrides", nargs="*", metavar="KEY=VALUE", help="rounds=2000, stop.seconds=600 …")
    add_run_options(add)


def add_run_options(add: Add) -> None:
    """Add the options of run and resume."""
    add("-q", "--quiet", action="store_true", help="print neither progress nor summary")
    add("-v", "--verbose", action="store_true", help="print the complete configuration first, and all settings last")
    add("--survive", action="store_true", help="continue when client ranks die (Open MPI's mpirun --with-ft ulfm)")


@command("sweep", "sweep:sweep", "many runs in one launch, each with a result file")
def sweep(add: Add) -> None:
    """Run every combination of the values given. The same command again skips the runs that finished."""
    add("study", **STUDY)
    values = "values with commas, or a range a:b or a:b:step without b: algorithm.k0=1,5,10 seed=0:20"
    add("--grid", action="append", default=[], metavar="KEY=VALUES", help=values)
    add("--zip", action="append", default=[], metavar="KEY=VALUES;KEY=VALUES", help="keys that change together")
    add("-o", "--output", default="results", metavar="FOLDER", help="folder of results (default: results)")
    add("--order", choices=("cost", "grid"), default="cost", help="cheapest first (default), or the order of the grids")
    add("--methods", metavar="FILE", help="every method in a file, such as best.toml of tune")
    add_parallel_options(add)
    add("--part", metavar="I/N", help="only the points I, I + N, I + 2N … of that order, counted from 0")
    add("--dry-run", action="store_true", help="print what would be run, and run nothing")
    add("--slurm", action="store_true", help="write sweep.sbatch, an array job, into the folder; run nothing")
    add("--tasks", type=int, metavar="N", help="tasks of the array job (default: by estimated cost)")
    add("--whole-node", action="store_true", help="give every task of the array job a node of its own")
    add("--force", action="store_true", help=OVERWRITE)
    add("-q", "--quiet", action="store_true", help="print only failures")


def add_parallel_options(add: Add) -> None:
    """Add the options of how many points run at a time."""
    jobs = "run N points at a time, each in one process (default: the cores; fewer for a few seconds of work)"
    add("-j", "--jobs", type=int, metavar="N", help=jobs)
    each = "under mpirun: groups of R ranks for clients and one for the server run a point each (0: one for all)"
    add("--each", type=int, metavar="R", help=each)


@command("tune", "sweep:tune", "the best setting of every method, with the same number of runs for each")
def tune(add: Add) -> None:
    """Try settings of methods on one study, and tell the best of each. The same command again goes on."""
    add("study", **STUDY)
    method = (
        "a method, label=NAME, values (k0=1,5,10) and ranges (t=0.001..1) to try; without: a range of its step size"
    )
    add("--method", action="append", default=[], metavar="'NAME KEY=VALUES …'", help=method)
    add("--methods", metavar="FILE", help='the same in a file: tables [[method]] with t = "0.001..1"')
    least = 'what the best has least of: rounds (default), bytes, seconds, objective … or "rounds to accuracy >= 0.9"'
    add("--measure", default="rounds", metavar="TEXT", help=least)
    add("--runs", type=int, default=12, metavar="N", help="settings tried of a method (12)")
    add("--seeds", default="100:103", metavar="VALUES", help="seeds of every setting (default: 100:103)")
    add("--median", action="store_true", help="compare medians over seeds, not means")
    add("-o", "--output", default="tuned", metavar="FOLDER", help="folder of results (default: tuned)")
    add_parallel_options(add)
    add("--force", action="store_true", help=OVERWRITE)
    add("-q", "--quiet", action="store_true", help="print only the table and failures")


@command("show", "results:show", "summarise result files")
def show(add: Add) -> None:
    add("result", nargs="+", help="result files")
    add("-v", "--verbose", action="store_true", help="show every setting, also those at their defaults")


@command("compare", "results:compare", "runs in a table, mean ± sd over seeds")
def compare(add: Add) -> None:
    """One row for all runs that differ in the seed alone, headed by the settings in which rows differ."""
    add("result", nargs="+", help="result files")
    add("--by", default="seed", metavar="KEYS", help="settings to take means over, or none (default: seed)")
    add("--columns", metavar="NAMES", help="objective,error,rounds,tct,lct,bytes … or any recorded column")
    add("--format", default="terminal", help="terminal, markdown, latex or csv")
    add("--sort", metavar="COLUMN", help="a setting, from small to large, or a column, best first")
    rename = "another name for a method, setting or column (repeatable)"
    add("--rename", action="append", default=[], metavar="OLD=NEW", help=rename)
    add("--all", action="store_true", help="count runs that did not finish too")
    add("--at", default="end", help="end, or best: numbers of the best round by what the run chose by")
    clients = "numbers of clients: mean, worst tenth and spread over them; --columns names some, such as accuracy,auc"
    add("--clients", action="store_true", help=clients)
    tests = "a column: also test every two rows over the seeds that all have (signed ranks, corrected by Holm)"
    add("--test", metavar="COLUMN", help=tests)


@command("certify", "studies:certify", "which conditions of the method's theorem a study meets, and what follows")
def certify(add: Add) -> None:
    """Print the constants of a study, each condition of the theorem of its method with both sides, what the theorem
    proves and, for a result file, what the run had. It is a report: the exit code is 0 whether or not conditions hold.
    """
    words = "experiment file, then overrides: algorithm.t=6; or one result file"
    add("study", nargs="*", metavar="study.toml | out.h5 | KEY=VALUE", help=words)
    eps = "of an asynchronous run: simulated seconds until ‖∇f‖² <= ε, and the least there is (default: powers of ten)"
    add("--eps", metavar="VALUES", help=eps)
    add("--picture", metavar="FILE", help="the same over ε, of a result file: .png, .pdf or .svg")
    add("--force", action="store_true", help="overwrite the picture")


@command("fit", "studies:fit", "coefficients with standard errors, and how far they are from the pooled optimum")
def fit(add: Add) -> None:
    """Print the final model as a table of coefficients: standard errors of the model and by client, z, p, intervals,
    dispersion, log-likelihood, AIC. A study is run first, in this process.
    """
    words = "experiment file, then overrides; or one result file, then data.path=FILE if its data are elsewhere now"
    add("study", nargs="*", metavar="study.toml | out.h5 | KEY=VALUE", help=words)
    add("--format", default="terminal", help="terminal, markdown, latex or csv")


@command("check", "studies:check", "check a class of yours against what it says of itself")
def check(add: Add) -> None:
    """Check an algorithm, a problem or another component in a small study: what it returns, derivatives, traits, the
    same bits on ranks and after a resume. The exit code is 1 where a check failed.
    """
    add("name", metavar="my.py:Class", help="class of yours, or a name that list prints")
    add("study", **STUDY)


@command("plot", "results:plot", "pictures of runs")
def plot(add: Add) -> None:
    """Curves of recorded columns; runs that differ in the seed alone are one curve with a band."""
    add("result", nargs="+", help="result files")
    add("--x", help="round (default), exchanges, bytes, bytes_up, seconds, simulated_seconds or any column")
    y = "columns, one panel each; error: f − f* (default: objective; error where f differs between seeds)"
    add("--y", action="append", default=[], help=y)
    add("--log", help="logarithmic axes: x, y, xy or none (default: y where values span two decades)")
    add("--box", metavar="KEY", help="boxes of the final value of y over a setting: algorithm.k0")
    add("--all", action="store_true", help="show runs that did not finish too")
    clients = "numbers of clients (y: accuracy …) by round, over clients and of those never trained, and their table"
    add("--clients", action="store_true", help=clients)
    profile = (
        'shares of data and seeds at most so many times the best, of a measure as in tune: "rounds to objective <= 0.1"'
    )
    add("--profile", metavar="MEASURE", help=profile)
    add("--timeline", action="store_true", help="where the time of one run went, by round and by rank")
    add("--availability", action="store_true", help="which share of the clients was there, selected and took part")
    add("--page", action="store_true", help="objective, error and accuracy by rounds, bytes, seconds")
    add("--band", help="around means over seeds: none, sd or minmax (default: minmax up to three curves, else none)")
    rename = "another name for a method, setting, column or curve: fedgia=ours (repeatable)"
    add("--rename", action="append", default=[], metavar="OLD=NEW", help=rename)
    add("--html", action="store_true", help="a page to explore the curves of all runs in a browser")
    add("--width", metavar="INCHES", help="single (3.4), double (7) or inches")
    add("--title", help="title of the picture")
    picture = "picture: .png, .pdf, .svg, or .html, a page to explore (default: figure.png; with --html page.html)"
    add("-o", "--output", help=picture)
    add("--force", action="store_true", help="overwrite the picture")


@command("list", "describe:list_or_describe", "list what an experiment file can name")
def names(add: Add) -> None:
    add("kind", nargs="?", help="algorithms, problems, data, partitions, selections … or matrix: algorithms × problems")


@command("describe", "describe:list_or_describe", "formula, options and source of an algorithm, a problem …")
def describe(add: Add) -> None:
    add("name")


@command("data", "data:data", DATA)
def data(add: Add) -> None:
    """data get NAME --to DIR downloads a data set. data info NAME-or-FILE [KEY=VALUE …] describes a data set, a data
    file or the data of an experiment file; the overrides are those of run.
    """
    add("action", choices=("get", "info"))
    add("name", help="get: a data set; info: a data set, a data file or an experiment file")
    add("overrides", nargs="*", metavar="KEY=VALUE", help="info: data.clients=10 data.partition=iid …")
    add("--to", default=".", help="get: folder to download into (default: the current one)")
    add("-o", "--output", help="info: picture of the classes at each client: .png, .pdf or .svg")
    add("--force", action="store_true", help="info: overwrite the picture")


@command("jobs", "editors:jobs", "copy the scripts for batch systems: SLURM, PBS, LSF, Flux")
def jobs(add: Add) -> None:
    """Copy the scripts and recipes for clusters to a folder jobs; the first lines of each say how it is submitted."""
    add("--to", default=".", metavar="FOLDER", help="where the folder jobs is made (default: the current folder)")
    add("--force", action="store_true", help="overwrite scripts that are there")


@command("schema", "editors:schema", "JSON schema of experiment files, for editors")
def schema(add: Add) -> None:
    """Print the JSON schema of experiment files. With it, an editor completes and checks TOML."""
    add("-o", "--output", metavar="FILE", help="write it to a file in place of the screen")
    add("--force", action="store_true", help="overwrite the file")


@command("completion", "editors:completion", "completion of the command mpifed, for a shell")
def completion(add: Add) -> None:
    """Print a script that completes the command mpifed: eval "$(mpifed completion bash)" loads it."""
    add("shell", choices=("bash", "zsh", "tcsh"), help="bash, zsh or tcsh")


COMMANDS = tuple(name for name, *_ in EVERY)


def starts_runs(words: Sequence[str]) -> bool:
    """Return True if a command line starts runs; it does not parse, because it is called before other imports."""
    options_without_runs = {f"--{option.replace('_', '-')}" for option in WITHOUT_RANKS}
    other_commands = {*COMMANDS, *ABOUT} - {*RUNS}
    return not words or (words[0] not in other_commands and not options_without_runs.intersection(words))


class Parser(argparse.ArgumentParser):
    """A parser that raises UserError for a wrong command line."""

    commands: Mapping[str, argparse.ArgumentParser]  # of the top parser

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
    """Parse a command line; without a command, as one of ``run``. UserError where it is wrong."""
    if not words or words[0] not in (*COMMANDS, *ABOUT):
        if words and not words[0].startswith("-"):
            refuse_command(words[0], COMMANDS)
        words = ["run", *words]
    top = parser()
    # argparse assigns the words before the first option to ``study``, and later ones to nothing
    args, unknown = top.parse_known_args(words)
    if unknown:
        target = "study" if hasattr(args, "study") else "overrides"
        if not hasattr(args, target) or not all("=" in word and word[0] != "-" for word in unknown):
            options = top.commands[args.command]._option_string_actions if args.command else ()
            refuse_options(unknown, words, args.command, options)
        vars(args)[target] += unknown
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
