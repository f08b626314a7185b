"""The commands with their options and help texts, and the functions that carry them out, as "file:function".

The files of the commands are imported when they are needed, so that help is there at once.
"""

from typing import Any

OVERWRITE = "overwrite results of other configurations"
STUDY = {"nargs": "*", "metavar": "study.toml | KEY=VALUE", "help": "experiment file, then overrides: algorithm.k0=5"}
TUNED, SEEDS = 12, "100:103"
SHELLS = ("bash", "zsh", "tcsh")


def run(commands: Any) -> None:
    """The commands run and resume."""
    new = commands.add_parser(
        "run",
        help="run an experiment (the default command)",
        description="Run an experiment file with overrides; every key has a default.",
    )
    new.add_argument("study", **STUDY)
    new.add_argument("-o", "--output", help="result file (default: mpifed-<algorithm>-<data>-<n>.h5)")
    new.add_argument("--force", action="store_true", help="overwrite the result file")
    old = commands.add_parser(
        "resume",
        help="continue from the last checkpoint of a result file",
        description="Continue a run that was stopped, was killed or failed, or one that is finished, with more rounds "
        "or time: the bits are those of a run that was not interrupted. Only rounds, stop, reduction, "
        "block_bytes and checkpoint may change.",
    )
    old.add_argument("result", help="result file of the run")
    old.add_argument("overrides", nargs="*", metavar="KEY=VALUE", help="rounds=2000, stop.seconds=600 …")
    for one in (new, old):
        one.set_defaults(act="run:run")
        add = one.add_argument
        add("-q", "--quiet", action="store_true", help="print neither progress nor summary")
        first = "print the complete configuration first, and all settings last"
        add("-v", "--verbose", action="store_true", help=first)
        survive = "continue when client ranks die (Open MPI's mpirun --with-ft ulfm)"
        add("--survive", action="store_true", help=survive)


def sweep(commands: Any) -> None:
    """The command sweep."""
    command = commands.add_parser(
        "sweep",
        help="many runs in one launch, each with a result file",
        description="Run every combination of the values given. The same command again skips the runs that finished.",
    )
    command.set_defaults(act="sweep:sweep")
    add = command.add_argument
    add("study", **STUDY)
    values = "values with commas, or a range a:b or a:b:step without b: algorithm.k0=1,5,10 seed=0:20"
    add("--grid", action="append", default=[], metavar="KEY=VALUES", help=values)
    add("--zip", action="append", default=[], metavar="KEY=VALUES;KEY=VALUES", help="keys that change together")
    add("-o", "--output", default="results", metavar="FOLDER", help="folder of results (default: results)")
    order = "cheapest first (default), or the order of the grids"
    add("--order", choices=("cost", "grid"), default="cost", help=order)
    add("--methods", metavar="FILE", help="every method in a file, such as best.toml of tune")
    share(command)
    add("--part", metavar="I/N", help="only the points I, I + N, I + 2N … of that order, counted from 0")
    add("--dry-run", action="store_true", help="print what would be run, and run nothing")
    add("--slurm", action="store_true", help="write sweep.sbatch, an array job, into the folder; run nothing")
    add("--tasks", type=int, metavar="N", help="tasks of the array job (default: by estimated cost)")
    add("--whole-node", action="store_true", help="give every task of the array job a node of its own")
    add("--force", action="store_true", help=OVERWRITE)
    add("-q", "--quiet", action="store_true", help="print only failures")


def share(command: Any) -> None:
    """How runs share the machine."""
    jobs = "run N points at a time, each in one process (default: the cores; fewer for a few seconds of work)"
    command.add_argument("-j", "--jobs", type=int, metavar="N", help=jobs)
    each = "under mpirun: groups of R ranks for clients and one for the server run a point each (0: one for all)"
    command.add_argument("--each", type=int, metavar="R", help=each)


def tune(commands: Any) -> None:
    """The command tune."""
    command = commands.add_parser(
        "tune",
        help="the best setting of every method, with the same number of runs for each",
        description="Try settings of methods on one study, and tell the best of each. The same command again goes on.",
    )
    command.set_defaults(act="tune:tune")
    add = command.add_argument
    add("study", **STUDY)
    method = "a method with values (k0=1,5,10) and ranges (t=0.001..1) to try; without: a range of its step size"
    add("--method", action="append", default=[], metavar="'NAME KEY=VALUES …'", help=method)
    add("--methods", metavar="FILE", help='the same in a file: tables [[method]] with t = "0.001..1"')
    least = 'what the best has least of: rounds (default), bytes, seconds, objective … or "rounds to accuracy >= 0.9"'
    add("--measure", default="rounds", metavar="TEXT", help=least)
    add("--runs", type=int, default=TUNED, metavar="N", help=f"settings tried of a method ({TUNED})")
    add("--seeds", default=SEEDS, metavar="VALUES", help=f"seeds of every setting (default: {SEEDS})")
    add("--median", action="store_true", help="compare medians over seeds, not means")
    add("-o", "--output", default="tuned", metavar="FOLDER", help="folder of results (default: tuned)")
    share(command)
    add("--force", action="store_true", help=OVERWRITE)
    add("-q", "--quiet", action="store_true", help="print only the table and failures")


def compare(commands: Any) -> None:
    """The commands show and compare."""
    one = commands.add_parser("show", help="summarise result files")
    one.set_defaults(act="compare:show")
    one.add_argument("result", nargs="+", help="result files")
    one.add_argument("-v", "--verbose", action="store_true", help="show every setting, also those at their defaults")
    table = commands.add_parser(
        "compare",
        help="runs in a table, mean ± sd over seeds",
        description="One row for all runs that differ in the seed alone, headed by the settings in which rows differ.",
    )
    table.set_defaults(act="compare:compare")
    add = table.add_argument
    add("result", nargs="+", help="result files")
    add("--by", default="seed", metavar="KEYS", help="settings to take means over, or none (default: seed)")
    add("--columns", metavar="NAMES", help="objective,error,rounds,tct,lct,bytes … or any recorded column")
    add("--format", default="terminal", help="terminal, markdown, latex or csv")
    add("--sort", metavar="COLUMN", help="a setting, from small to large, or a column, best first")
    rename = "another name for a method, setting or column (repeatable)"
    add("--rename", action="append", default=[], metavar="OLD=NEW", help=rename)
    add("--all", action="store_true", help="count runs that did not finish too")


def certify(commands: Any) -> None:
    """The command certify."""
    command = commands.add_parser(
        "certify",
        help="which conditions of the method's theorem a study meets, and what follows",
        description="Print the constants of a study, each condition of the theorem of its method with both sides, what "
        "the theorem proves and, for a result file, what the run had. It is a report: the exit code is 0 whether or "
        "not conditions hold.",
    )
    command.set_defaults(act="certify:certify")
    words = "experiment file, then overrides: algorithm.t=6; or one result file"
    command.add_argument("study", nargs="*", metavar="study.toml | out.h5 | KEY=VALUE", help=words)


def plot(commands: Any) -> None:
    """The command plot."""
    command = commands.add_parser(
        "plot",
        help="pictures of runs",
        description="Curves of recorded columns; runs that differ in the seed alone are one curve with a band.",
    )
    command.set_defaults(act="plot:plot")
    add = command.add_argument
    add("result", nargs="+", help="result files")
    add("--x", help="round (default), exchanges, bytes, bytes_up, seconds, simulated_seconds or any column")
    y = "columns, one panel each; error: f − f* (default: objective; error where f differs between seeds)"
    add("--y", action="append", default=[], help=y)
    add("--log", help="logarithmic axes: x, y, xy or none (default: y where values span two decades)")
    add("--box", metavar="KEY", help="boxes of the final value of y over a setting: algorithm.k0")
    add("--all", action="store_true", help="boxes of runs that did not finish too")
    add("--timeline", action="store_true", help="where the time of one run went, by round and by rank")
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


def names(commands: Any) -> None:
    """The commands list and describe."""
    kinds = commands.add_parser("list", help="list what an experiment file can name")
    every = "algorithms, problems, data, partitions, selections … or matrix: algorithms × problems"
    kinds.add_argument("kind", nargs="?", help=every)
    one = commands.add_parser("describe", help="formula, options and source of an algorithm, a problem …")
    one.add_argument("name")
    for command in (kinds, one):
        command.set_defaults(act="describe:told")


def data(commands: Any) -> None:
    """The command data."""
    command = commands.add_parser(
        "data",
        help="download a data set (get), or describe data and how they are divided among clients (info)",
        description="data get NAME --to DIR downloads a data set. data info NAME-or-FILE [KEY=VALUE …] describes a "
        "data set, a data file or the data of an experiment file; the overrides are those of run.",
    )
    command.set_defaults(act="data:data")
    add = command.add_argument
    add("action", choices=("get", "info"))
    add("name", help="get: a data set; info: a data set, a data file or an experiment file")
    add("overrides", nargs="*", metavar="KEY=VALUE", help="info: data.clients=10 data.partition=iid …")
    add("--to", default=".", help="get: folder to download into (default: the current one)")
    add("-o", "--output", help="info: picture of the classes at each client: .png, .pdf or .svg")
    add("--force", action="store_true", help="info: overwrite the picture")


def editors(commands: Any) -> None:
    """The commands schema and completion."""
    printing = commands.add_parser(
        "schema",
        help="JSON schema of experiment files, for editors",
        description="Print the JSON schema of experiment files. With it, an editor completes and checks TOML.",
    )
    printing.set_defaults(act="editors:schema")
    printing.add_argument("-o", "--output", metavar="FILE", help="write it to a file in place of the screen")
    printing.add_argument("--force", action="store_true", help="overwrite the file")
    completing = commands.add_parser(
        "completion",
        help="completion of the command mpifed, for a shell",
        description='Print a script that completes the command mpifed: eval "$(mpifed completion bash)" loads it.',
    )
    completing.set_defaults(act="editors:completion")
    completing.add_argument("shell", choices=SHELLS, help="bash, zsh or tcsh")


EVERY = (run, sweep, tune, compare, certify, plot, names, data, editors)
