"""Wrong and hostile input from a table is refused by one sentence and exit code 2, soon, and nothing is written."""

import gzip
import os
import re
import shlex
import subprocess
import sys
import time
from importlib.util import find_spec

import h5py
import msgspec
import numpy as np
import pytest

from mpifed.cli.describe import KINDS
from mpifed.cli.main import main
from mpifed.core.errors import UserError
from mpifed.core.files import replace_file
from mpifed.core.toml import from_toml, to_toml
from mpifed.data.dataset import Data
from mpifed.experiment.config import read_experiment
from mpifed.features.settings import Evaluate, Experiment, Record
from mpifed.features.stop import StopRules
from mpifed.kernels import compiling
from tests.helpers import hostile_files as hostile

SECONDS = 20
FRAMES = re.compile(r'Traceback|File "|failed: \w*(Error|Exception|Iteration)')  # of an error that nobody expected
TORCH = find_spec("torch") is not None
RUN = ["run", "problem=logistic", "rounds=1", "data=file"]
QUIET = ["run", "data.clients=6", "data.features=5", "rounds=1"]
REPLAY = [*QUIET, "selection=replay"]


def studies():
    """Name -> (content, what is said of it) of experiment files."""
    deep = 100_000
    return {
        "no.toml": (b"rounds = = 3", "not valid TOML: Invalid value"),
        "binary.toml": (bytes(range(256)) * 9, "not valid TOML"),
        "latin.toml": ("name = 'Zürich'".encode("latin-1"), "not valid TOML: 'utf-8' codec"),
        "twice.toml": (b"rounds = 3\nrounds = 4", "not valid TOML: Cannot overwrite"),
        "brackets.toml": (b"rounds = " + b"[" * deep, "not valid TOML|nested more than 32 levels deep"),
        "braces.toml": (b"rounds = " + b"{a=" * deep, "not valid TOML|nested more than 32 levels deep"),
        "dotted.toml": (b"a." * deep + b"a = 1", "more than 10000 full stops"),
        "digits.toml": (b"rounds = " + b"9" * 100_000, "not valid TOML: Exceeds the limit"),
        "wide.toml": (b"rounds = " + b"9" * 400, "rounds = 9{9,}.* is wrong: "),
        "value.toml": (b"rounds = '" + b"a" * 10**6 + b"'", 'rounds = "a+…a+" is wrong'),
        "key.toml": (b"a" * 10**6 + b" = 1", "unknown key 'a+ … "),
        "escape.toml": (b'"\\u001b[2Jrounds" = 1', r"unknown key '\\\\x1b\[2Jrounds'|unknown key '\\x1b\[2Jrounds'"),
        "array.toml": (b"[[data]]\nname = 'qot'", "data = .* is wrong: data is a table"),
        "name.toml": (b"[algorithm]\nname = ['fedgia']", "unknown algorithm"),
        "date.toml": (b"seed = 1979-05-27", "seed = 1979-05-27 is wrong: it must be a whole number"),
        "nan.toml": (b"[stop]\ngradient = nan", "stop.gradient = nan is wrong: it must be a finite number"),
        "inf.toml": (b"[selection]\nshare = inf", "selection.share = inf is wrong"),
        "null-path.toml": (b'data = {name = "file", path = "a\\u0000b.h5"}', r'".*a\\x00b.h5" is not a file'),
        "device.toml": (b'[data]\nname = "file"\npath = "/dev/zero.h5"', 'data.path = "/dev/zero.h5" is not a file'),
        "module.toml": (
            b"algorithm = 'fedavg'\ndata = 'digits'\nproblem = {name = 'torch', module = 'os; import sys:Net'}",
            "problem.module = .* is wrong: write .*package.module:Class" if TORCH else "needs PyTorch .*pip install",
        ),
    }


def fields():
    """(words, what is said of it) for every key that an experiment file can set, with a value of no such kind."""
    families = {"data": "data", "problems": "problem", "algorithms": "algorithm", "selections": "selection"}
    tables = [
        (table, [f"{table}={name}"], KINDS[kind].member(name, table))
        for kind, table in families.items()
        for name in KINDS[kind].choices
    ]
    tables += [("", [], Experiment), ("stop", [], StopRules), ("evaluate", [], Evaluate), ("record", [], Record)]
    for table, words, kind in tables:
        for k, field in enumerate(msgspec.structs.fields(kind)):
            key, value = f"{table}.{field.encode_name}".strip("."), ("1979-05-27", "[[[]]]")[k % 2]
            yield [*words, f"{key}={value}"], rf"^mpifed: {key} = {re.escape(value)} is wrong: "


def numbers():
    """The same with numbers that nobody can mean."""
    for key in ("data.clients", "data.features", "data.least", "data.most", "algorithm.k0", "rounds", "evaluate.every"):
        for value in (0 if key != "rounds" else -1, -(2**63), 10**30, "nan", "1.5"):
            yield [f"{key}={value}"], rf"^mpifed: {key} = \S+ is wrong: "
    for key in ("selection.share", "stop.gradient", "stop.accuracy", "stop.seconds"):
        for value in ("-1", "nan", "-inf", 10**400, "true"):
            yield [f"{key}={value}"], rf"^mpifed: {key} = \S+ is wrong: "


COMMANDS = [
    (["show", "nothing.h5"], "nothing.h5 cannot be read: no such file"),
    (["show", "folder"], "folder is a folder: name the result files in it, folder.*h5"),
    (["show", "pipe"], "pipe is not a result file: it is a pipe or a device"),
    (["show", "/dev/zero"], "/dev/zero is not a result file: it is a pipe or a device"),
    (["show", "s-nan-data.npz"], "s-nan-data.npz is not a result file: it is not HDF5"),
    (["show", "empty.csv"], "empty.csv is not a result file: it is empty"),
    (["show", "good.h5"], "good.h5 is an HDF5 file but not a result of mpifed"),
    (["show", "a" * 5000], "a+ … a+ cannot be read: file name too long"),
    (["list", "algorithm"], "unknown kind 'algorithm'; did you mean 'algorithms'"),
    (["describe", "fedgiaa"], "unknown name 'fedgiaa'; did you mean 'fedgia'"),
    (["describe", "\x1b[31mred\nmpifed, all is well"], r"unknown name '.*x1b\[31mred.*n?mpifed, all is well'"),
    (["data", "put", "x"], "invalid choice: 'put'"),
    (["data", "get", "../../etc"], "unknown data set '../../etc'; the choices are qot"),
    (["data", "get", "sct"], "sct cannot be downloaded without a login: download train.csv of "),
    (["data", "info", "nothing.npz"], 'data.path = "nothing.npz" is not a file'),
    (["data", "info", "folder.h5"], 'data.path = "folder.h5" is not a file'),
    (["data", "info", "pipe.csv"], 'data.path = "pipe.csv" is not a file'),
    (["data", "info", "~nobody-here/fed.h5"], 'data.path = "~nobody-here/fed.h5" is not a file'),
    (["data", "info", "a" * 5000 + ".h5"], 'data.path = "a+ … .*is not a file'),
    (["data", "info", "nobody"], "'nobody' is neither a data file nor a data set"),
    (["run", "=3"], "'=3' is not an override: write KEY=VALUE"),
    (["run", "a.toml", "b.toml"], "a run has one experiment file, not 2: a.toml, b.toml"),
    (["run", "folder"], "'folder' is not an experiment file: it is a folder, a pipe or a device"),
    (["run", "pipe"], "'pipe' is not an experiment file"),
    (["resume", "pipe"], "pipe is not a result file: it is a pipe or a device"),
    (["fit", "pipe.h5"], "pipe.h5 is not a result file: it is a pipe or a device"),
    (["run", "start=pipe"], "start = .pipe. is wrong: there is no such file"),
    (["run", "algorithm=dgd", "graph=file", "graph.path=pipe"], "graph.path = .* it is a pipe or a device"),
    (["tune", "--methods", "pipe"], "--methods pipe is wrong: it cannot be read: it is a pipe or a device"),
    (["run", "/dev/zero"], "'/dev/zero' is not an experiment file"),
    (["run", "big.toml"], "'big.toml' is not an experiment file: it has more than 1 MiB"),
    (["run", "a" * 5000], "'a+ … a+' is neither an experiment file nor KEY=VALUE|… .*KEY=VALUE"),
    (["run", "a" * 5000 + ".toml"], "experiment file 'a+ … .* cannot be read: File name too long"),
    (["run", "a." * 40_000 + "a=1"], "is not an override: it has more than 10000 full stops"),
    (["run", "a." * 900 + "a=1"], "nested more than 32 levels deep"),
    (["run", "seed=" + "[" * 60_000], "seed = .* is wrong: it must be a whole number"),
    (["run", "seed=" + "{a=" * 90 + "1" + "}" * 90], "nested more than 32 levels deep"),
    (["run", "rounds.a.b=1"], "rounds = .* is wrong"),
    (["run", "algorithm.name.x=1"], "unknown algorithm"),
    (["run", "algorithm..k0=1"], "unknown key 'algorithm.'"),
    (["run", "algorithm=\udcff"], r"unknown algorithm '\\+udcff'"),
    (["run", "data=file"], "data.path is missing: it has no default"),
    (["run", "data=file", "data.path=x\nmpifed: done.h5"], r"data.path = \"x\\nmpifed: done.h5\" is not a file"),
    (["run", "data=mnist"], "train-images-idx3-ubyte.gz"),
    (["run", "data.clients=1000000", "data.most=1000000000"], "does not fit in the memory|would take"),
    (["run", "data.features=100000000", "data.clients=2"], "clients 0 to 1 would take"),
    (["run", "data=images", "data.classes=10001"], "= 10001 is wrong: it must be a whole number >= 2 and <= 10000"),
    ([*QUIET, "-o", "there.h5"], "there.h5 exists; say --force to overwrite it or -o for another name"),
    ([*QUIET, "-o", "link.h5"], "link.h5 exists; say --force"),
    ([*QUIET, "-o", "dangling.h5"], "dangling.h5 is a link to nowhere/out.h5, which does not exist: say -o for anoth"),
    ([*QUIET, "-o", "round.h5"], "round.h5 is a link to round.h5"),
    ([*QUIET, "-o", "folder"], "folder is not a file"),
    ([*QUIET, "-o", "pipe", "--force"], "pipe is not a file"),
    ([*QUIET, "-o", "/dev/full", "--force"], "/dev/full is not a file"),
    ([*QUIET, "-o", "/proc/1/out.h5"], "/proc/1/out.h5 cannot be written"),
    ([*QUIET, "-o", "no/where.h5"], "no/where.h5 cannot be written: there is no folder no"),
    ([*QUIET, "-o", "there.h5/out.h5"], "there.h5/out.h5 cannot be written"),
    ([*QUIET, "-o", "a" * 300 + ".h5"], "a+.h5 cannot be written: file name too long"),
    ([*QUIET, "-o", ""], "-o '' is wrong: a result file needs a name"),
    (["show", "there.h5"], "there.h5 is not a result file"),
    (["foo"], r"^mpifed: 'foo' is neither a command \(run, resume, sweep, .*\) nor an experiment file nor KEY=VALUE"),
]
NEITHER = "neither an experiment file nor KEY=VALUE, such as algorithm.k0=5"
MEANT = {  # a word that is no command, no option, no file and no override is answered by what was meant
    "--rounds 5": "--rounds is a key of the experiment, not an option: write rounds=5",
    "run --rounds": "--rounds is a key of the experiment, not an option: write rounds=VALUE",
    "run --algorithm.k0 5": "--algorithm.k0 is a key of the experiment, not an option: write algorithm.k0=5",
    "run --k0 5": "--k0 is a key of the experiment, not an option: write algorithm.k0=5",
    "run --clients 5 seed=1": "--clients is a key of the experiment, not an option: write data.clients=5",
    "resume out.h5 --rounds 9": "--rounds is a key of the experiment, not an option: write rounds=9",
    "run --forse": "run has no option --forse; did you mean --force?",
    "run -x": "run has no option -x; `python -m mpifed run --help` lists the options",
    "show --rounds 5 x.h5": "show has no option --rounds; `python -m mpifed show --help` lists the options",
    "list data problems": "list takes no argument 'problems': `python -m mpifed list --help` says what it takes",
    "runn study.toml": "unknown command 'runn'; did you mean 'run'?",
    "help": "unknown command 'help'; did you mean '--help'?",
    "run runn": f"'runn' is {NEITHER}",
    "sweep study --grid seed=0:3": f"'study' is {NEITHER}",
    "run rounds 5": "'rounds' is a key, and a key needs a value: write rounds=5",
    "run clients=5": "unknown key 'clients'; write data.clients=5",
    "k0=5": "unknown key 'k0'; write algorithm.k0=5",
    "run fedavg": "'fedavg' is not an experiment file: write algorithm=fedavg",
    "digits": "'digits' is not an experiment file: write data=digits",
    "run nowhere/study": "experiment file 'nowhere/study' cannot be read: No such file or directory",
    "study.toml": "experiment file 'study.toml' cannot be read: No such file or directory",
    "out.h5": "'out.h5' is a result file, not an experiment file: "
    "`resume` goes on with its run, `show` prints its summary",
    "run nowhere.csv.gz": "'nowhere.csv.gz' is a data file, not an experiment file: "
    "write data=file data.path=nowhere.csv.gz",
    "halves.npz -q": "'halves.npz' is a data file, not an experiment file: write data=file data.path=halves.npz",
    "resume": "resume needs a result file, as in: python -m mpifed resume out.h5",
    "sweep --grid seed=0:2 -j two": "--jobs two is wrong: it must be a whole number",
}
SENTENCES = {  # sweep, tune and data: command -> arguments -> what is said, among more
    "sweep data.clients=6 data.features=5 rounds=4 algorithm=fedavg": {
        "": "a sweep needs --grid KEY=VALUES",
        "--grid seed": "--grid 'seed' is wrong: write KEY=VALUES",
        "--grid seed=1,,2": "a value is missing",
        "--grid seed=3:3": "the range 3:3 has no values",
        "--grid seed=0:3:0": "the range 0:3:0 has no values",
        "--grid seed=0:1000000000000000": "has more than 100,000 values",
        "--grid stop.gradient=0.1:0.5": "a range has whole numbers",
        "--grid seed=0:1000 --grid algorithm.k0=1:1000": "at most 100,000 points, and these grids have 999,000",
        "--grid seed=1,2 --grid seed=3": "seed is given twice: in two grids",
        "--grid rounds=1,2": "rounds is given twice: in a grid and an override",
        "--zip seed=1,2;algorithm.k0=3": "seed has 2, algorithm.k0 has 1",
        "--grid seed=0,-1": "point seed=-1: seed = -1 is wrong",
        "--grid algorithm.H=gram": "point H=gram: unknown key 'algorithm.H'",
        "--grid seed=0:2 --part 2/2": "--part 2/2 is wrong",
        "--grid seed=0:2 --tasks 2": "--tasks and --whole-node go with --slurm",
        "--grid seed=0:2 --slurm -j 2 --each 1": "--jobs and --each do not go together",
        "--grid seed=0:2 --slurm --tasks 3": "--tasks 3 is wrong: it must be between 1 and the 2 points",
        "--grid seed=0:2 -o /dev/null/x": "-o /dev/null/x is wrong: this folder cannot be created",
        "--grid seed=0:2 -j 0": "--jobs 0 is wrong: it must be at least 1",
        "--grid seed=0:2 --each -1": "--each -1 is wrong: it must be at least 0",
        "--grid seed=0:2 --each 1": "--each 1 is wrong without mpirun: say --jobs N",
    },
    "tune data.clients=4": {
        "": "tune needs --method 'NAME KEY=VALUES'",
        "--method fedavg --runs 0": "--runs 0 is wrong",
        "--method fedavg --seeds x": "--seeds x is wrong: write whole numbers",
        "--method 'fedavg k1=1,2'": "method fedavg: unknown key 'algorithm.k1'",
        "--methods none.toml": "--methods none.toml is wrong: it cannot be read",
    },
    "data": {
        "info digits mnist": "'mnist' is not an override: after 'digits' write KEY=VALUE",
        "info digits data.klients=3": "data.klients",
        "info digits -o x.gif": "x.gif does not name a picture: it must end in .png, .pdf, .svg",
        "get qot data.clients=3": "data.clients=3 is for data info: data get takes the name of a data set",
        "get qot -o x.png": "-o is for data info",
        "info none.toml": "experiment file 'none.toml' cannot be read",
    },
}
GIVEN = [*RUN, "data.path=good.npz"]
REPLAYED = ["selection=replay", "selection.path=rows.npz"]
WRONG = {  # arguments of run, the default command; on one rank here, and on several in tests/mpi
    "table": (["odd.toml"], "algoritm.*algorithm"),
    "count": ([*QUIET, "selection.count=7"], "selection.count = 7 .*6 clients"),
    "sizes": ([*RUN, "data.path=a-small-sizes.npz"], "sizes of .*a-small-sizes.npz"),
    "empty client": ([*RUN, "data.path=a-zero-sizes.npz"], "sizes of .*a-zero-sizes.npz"),
    "few labels": ([*RUN, "data.path=a-short-y.npz"], "y of .*a-short-y.npz"),
    "NaN": ([*RUN, "data.path=a-nan.npz"], "row 3 of X of .*a-nan.npz"),
    "labels": ([*RUN, "data.path=halves.npz"], "labels must be 0 and 1 .* 0.5"),
    "truncated": ([*RUN, "data.path=cut-1.h5"], "cut-1.h5"),
    "other clients": ([*GIVEN, "data.clients=4"], "clients = 4 .*3"),
    "short replay": ([*GIVEN, "rounds=3", *REPLAYED], "2 rows in 'sel', but rounds = 3"),
    "strangers": ([*GIVEN, *REPLAYED, "selection.key=far"], "'far' must name clients from 0 to 2"),
    "no recording": ([*GIVEN, "selection=replay", "selection.path=nothing.npz"], "'nothing.npz' is no file: it must"),
    "a folder": ([*GIVEN, "selection=replay", "selection.path=."], "'.' is no file: it must be an NPZ file"),
    "few later": ([*GIVEN, *REPLAYED, "selection.key=few", "masks={}"], "masks need at least 2"),
    "no second": ([*GIVEN, *REPLAYED, "algorithm=accfeddcd", "rounds=0"], "'sel2' is not in"),
    "no array": ([*GIVEN, *REPLAYED, "selection.key=none"], "none.* there is .*sel"),
    "lack": ([*GIVEN, "problem=quadratic"], "quadratic.* client 0"),
}
OBJECTS = hostile.npy_of(np.array([[hostile.Trap()]], object), True)
ENDLESS = hostile.npy(hostile.head("'<i8'", f"({10**15}, 2)"), bytes(16))
SELECTIONS = {
    "far.npz": (hostile.npz(sel=np.array([[0, 99]])), "every row of 'sel' must name clients from 0 to 5"),
    "twice.npz": (hostile.npz(sel=np.array([[1, 1]])), "a row of 'sel' names a client twice"),
    "half.npz": (hostile.npz(sel=np.array([[0.5]])), r"'sel' must be a table of whole numbers .*, not float64"),
    "nobody.npz": (hostile.npz(sel=np.array([[-1, -1]])), "every row of 'sel' must name clients"),
    "rows.npz": (hostile.npz(sel=np.zeros((0, 3), int)), "has 0 rows in 'sel', but rounds = 1"),
    "bool.npz": (hostile.npz(sel=np.array([[True]])), r"numbers \(rounds, clients\), not bool \(1, 1\)"),
    "words.npz": (hostile.npz(sel=np.array([["0"]])), r"numbers \(rounds, clients\), not <U1 \(1, 1\)"),
    "flat.npz": (hostile.npz(sel=np.arange(3)), "'sel' must be a table of whole numbers"),
    "other.npz": (hostile.npz(other=np.zeros((2, 2))), "selection.key = 'sel' is not in .*; there is other"),
    "objects.npz": (hostile.zipped({"sel.npy": OBJECTS}), "'sel' must be a table of whole numbers .*, not object"),
    "endless.npz": (hostile.zipped({"sel.npy": ENDLESS}), "sel of .* declares the shape"),
    "text.npz": (b"0 1\n2 3\n", "cannot be read as NPZ"),
    "pickle.npz": (b"\x80\x04\x95.", "cannot be read as NPZ"),
}


def result(spoil):
    """A result file of 3 rounds, 4 clients and 2 ranks, spoilt."""

    def write(out):
        out.attrs.update(format="mpifed-result", format_version=1, clients=4, ranks=2, status="finished")
        out.attrs["config"] = "[algorithm]\nname = 'fedgia'\n[data]\nname = 'qot'\n"
        for name, values in {
            "rounds/round": np.arange(3),
            "rounds/objective": np.ones(3),
            "rounds/bytes_up": np.arange(3),
            "ranks/rank": np.arange(2),
            "ranks/samples": np.arange(2),
            "clients/samples": np.ones(4, int),
            "model/x": np.zeros(5),
            "selection": np.zeros((3, 2), int),
        }.items():
            out[name] = values
        spoil(out)

    return hostile.h5(write)


def attrs(**values):
    """What replaces attributes of a result."""
    return lambda out: out.attrs.update(values)


def put(name, target=None, **how):
    """What replaces a dataset of a result, by a target or by what ``how`` says."""

    def spoil(out):
        del out[name]
        if how:
            out.create_dataset(name, **how)
        else:
            out[name] = target

    return spoil


MANY, ZEROS = 10**12, [("/dev/zero", 0, h5py.h5f.UNLIMITED)]
RESULTS = {
    "config": (attrs(config="a = = 1"), "the attribute config of result-config.h5 is not valid TOML"),
    "config-type": (attrs(config=3), "its attribute config must be a text"),
    "config-dots": (attrs(config="a." * 30_000 + "a=1"), "more than 10000 full stops"),
    "config-flat": (attrs(config="algorithm = 3"), "algorithm = 3 is not a table"),
    "status": (attrs(status=np.arange(3)), "its attribute status must be a text"),
    "version": (attrs(format_version="1"), "its attribute format_version must be a whole number"),
    "newer": (attrs(format_version=99), "has result format 99, which a newer mpifed wrote"),
    "format": (attrs(format="other"), "is an HDF5 file but not a result of mpifed"),
    "below": (attrs(clients=-4), "its attribute clients must be a whole number, at least 0"),
    "name": (attrs(config="data = {name = 3}"), "data.name = 3 is not a text"),
    "half": (put("rounds/bytes_up", data=np.full(3, np.inf, "f2")), "bytes_up has type float16 .* numbers of 64 bits"),
    "short": (put("rounds/bytes_up", data=np.zeros(0)), "the columns of rounds differ in length"),
    "order": (put("rounds/round", data=[0, 2, 1]), "rounds/round must count 0, 1, 2"),
    "strangers": (put("selection", data=np.full((3, 2), 4)), "selection names clients that are not among its 4"),
    "clients": (attrs(clients="many"), "its attribute clients must be a whole number"),
    "no-rounds": (lambda out: out.__delitem__("rounds"), "damaged or truncated"),
    "endless": (put("rounds/round", shape=(MANY,), dtype="i8", chunks=(1024,)), "round of .* declares 8,000,000,"),
    "selection": (put("selection", shape=(3, MANY), dtype="i4", chunks=(1, 1024)), "on of .* declares 12,000,000,"),
    "column-text": (put("rounds/objective", data=["a", "b", "c"]), "rounds/objective has type object"),
    "column-cube": (put("rounds/objective", data=np.zeros((3, 3, 3))), r"objective has .* and shape \(3, 3, 3\)"),
    "ranks-short": (put("ranks/samples", data=np.zeros(9, int)), "the columns of ranks differ in length"),
    "model-text": (put("model/x", data="word"), "model/x has type"),
    "model-table": (put("model/x", data=np.zeros((5, 5))), "model/x has type float64"),
    "soft-loop": (put("rounds/objective", h5py.SoftLink("/rounds/objective")), "objective of .* is a link"),
    "external": (put("rounds", h5py.ExternalLink("pipe", "/rounds")), "rounds of .* is a link"),
    "outside": (put("model/x", shape=(5,), dtype="f8", external=ZEROS), "x of .* lies in other files"),
}
IMAGES = {
    "magic": (b"\0\0\x0d\x03" + hostile.IMAGES[4:], hostile.LABELS, "is not an IDX file of unsigned bytes in 3 dim"),
    "none": (b"", hostile.LABELS, "is not an IDX file"),
    "head": (hostile.IMAGES[:9], hostile.LABELS, "ends in its header"),
    "endless": (hostile.IMAGES[:4] + b"\xff" * 12, hostile.LABELS, "declares 4294967295 x 4294967295 x 4294967295"),
    "short": (hostile.IMAGES[:-1], hostile.LABELS, "declares 20 x 2 x 2 bytes, but holds 79"),
    "long": (hostile.IMAGES + b"x", hostile.LABELS, "but holds more"),
    "packed": (gzip.compress(hostile.IMAGES)[:-12], hostile.LABELS, "cannot be read as IDX"),
    "bomb": (gzip.compress(bytes(1 << 20)) * 40, hostile.LABELS, "is not an IDX file"),
    "labels": (hostile.IMAGES, hostile.LABELS[:-3], "declares 20 bytes, but holds 17"),
    "fewer": (hostile.IMAGES, b"\0\0\x08\x01\0\0\0\x05" + bytes(5), "y of .* has 5 entries, but X has 20 rows"),
}


def cases():
    """Name -> (words, pattern)."""
    found = {f"key {k}": (["run", *words], told) for k, (words, told) in enumerate([*fields(), *numbers()])}
    found |= {f"command {k}": case for k, case in enumerate(COMMANDS)}
    found |= {f"study {name}": (["run", name], told) for name, (_, told) in STUDIES.items()}
    found |= {f"info {name}": (["data", "info", name], told) for name, (_, told) in DATA.items()}
    del found["info nan.csv"]  # data info counts missing cells, and draws no picture of them
    found["info -o nan.csv"] = (["data", "info", "nan.csv", "-o", "nan.png"], DATA["nan.csv"][1])
    found |= {f"run {name}": ([*RUN, f"data.path={name}"], told) for name, (_, told) in hostile.MORE.items()}
    found |= {f"replay {k}": ([*REPLAY, f"selection.path=replay-{k}"], told) for k, (_, told) in SELECTIONS.items()}
    found |= {f"wrong {name}": case for name, case in WRONG.items()}
    found |= {f"meant {line}": (line.split(), f"^mpifed: {re.escape(told)}\n$") for line, told in MEANT.items()}
    found |= {
        f"{command.split()[0]} {line}": (shlex.split(f"{command} {line}"), re.escape(told))
        for command, lines in SENTENCES.items()
        for line, told in lines.items()
    }
    found |= {f"show {name}": (["show", f"result-{name}.h5"], told) for name, (_, told) in RESULTS.items()}
    return found | {
        f"mnist {name}": (["run", "data=mnist", "data.clients=2", f"seed={k}"], told)
        for k, (name, (*_, told)) in enumerate(IMAGES.items())
    }


DATA = hostile.data_files()
STUDIES = studies()
CASES = cases()
FEATURES = next(name for name, (words, _) in CASES.items() if "data.features=100000000" in words)
KEYS = [name for name in CASES if name.startswith("key ")]


def filled(place):
    """Fill a folder with all the files of this module."""
    rows = {"sel": np.array([[0, 1], [1, 2]]), "far": np.array([[0, 99]] * 9), "few": np.array([[0, 1], [2, -1]] * 4)}
    files = {name: content for name, (content, _) in (DATA | STUDIES).items()}
    files |= {f"replay-{name}": content for name, (content, _) in SELECTIONS.items()}
    files |= {f"result-{name}.h5": result(spoil) for name, (spoil, _) in RESULTS.items()}
    files |= {f"good.{suffix}": hostile.WHOLE[suffix] for suffix in ("h5", "npz")}
    files |= {"halves.npz": hostile.npz(**hostile.GOOD | {"y": hostile.Y / 2}), "rows.npz": hostile.npz(**rows)}
    files |= {"odd.toml": b"[algoritm]\nname = 'fedgia'", "there.h5": b"mine"}
    for name, (images, labels, _) in IMAGES.items():
        (place / name / "mnist").mkdir(parents=True)
        files[f"{name}/mnist/train-images-idx3-ubyte.gz"] = images
        files[f"{name}/mnist/train-labels-idx1-ubyte.gz"] = labels
    for name, content in files.items():
        (place / name).write_bytes(content)
    for name in ("folder", "folder.h5"):
        (place / name).mkdir()
    for name in ("pipe", "pipe.csv", "pipe.h5"):
        os.mkfifo(place / name)
    for name, target in (("link.h5", "there.h5"), ("dangling.h5", "nowhere/out.h5"), ("round.h5", "round.h5")):
        (place / name).symlink_to(target)
    with open(place / "big.toml", "wb") as file:
        file.truncate(100 << 20)
    return place


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return filled(tmp_path_factory.mktemp("hostile"))


def costly(name):
    """Whether a case takes a second: it unpacks much (see test_bombs), counts many features, or imports torch."""
    return bool(re.match("(run|info) (bomb|long-line)", name)) or name in ("study module.toml", FEATURES)


def listing(folder):
    """Every file with its kind, size and the time of its last change."""
    found = {}
    for entry in os.scandir(folder):
        about = entry.stat(follow_symlinks=False)
        found[entry.path] = (about.st_mode, about.st_size, about.st_mtime_ns, about.st_ino)
        if entry.is_dir(follow_symlinks=False):
            found |= listing(entry.path)
    return found


ROOMS = dict.fromkeys(name.split()[0] for name in CASES)
TOGETHER = {room: [name for name in CASES if name.split()[0] == room and not costly(name)] for room in ROOMS}
TOGETHER["key"] = KEYS[::9]
MORE = {name: [name] for name in CASES if costly(name)} | {"all keys": KEYS}


@pytest.mark.parametrize(
    "names",
    [pytest.param(names, id=room) for room, names in TOGETHER.items()]
    + [pytest.param(names, id=name, marks=pytest.mark.slow) for name, names in MORE.items()],
)
def test_a_sentence_and_nothing_else(names, folder, monkeypatch, capsys):
    before = listing(folder)
    monkeypatch.chdir(folder)
    monkeypatch.setattr(compiling, "compile_note", lambda *_: None)
    for name in names:
        words, told = CASES[name]
        monkeypatch.setenv("MPIFED_DATA", str(folder / name.split()[-1]))
        begun = time.process_time()
        code = main(words)
        assert time.process_time() - begun < SECONDS
        out, err = capsys.readouterr()
        assert code == 2, (words, err)
        assert not out
        assert re.fullmatch(r"mpifed: [^\n]*\n", err), err
        assert not FRAMES.search(err), err
        assert len(err) < 700
        assert re.search(told, err), (words, err)
    assert listing(folder) == before


BOUNDED = r"""
import re, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
from mpifed.cli.main import main
codes = [main(line.split()) for line in sys.stdin.read().splitlines()]
print(codes, re.search(r"VmHWM:\s+(\d+)", open("/proc/self/status").read())[1])
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("long", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_bombs_take_no_memory(long, folder):
    kinds = ("endless", "bomb", "zeros", "unwritten", "overflow", "long")
    names = [name for name in DATA if name.startswith(kinds) and (long or not costly(f"info {name}"))]
    words = ["show result-endless.h5", "show result-selection.h5", "run big.toml"]
    words += [f"data info {name}" for name in names]
    done = subprocess.run(
        [sys.executable, "-c", BOUNDED],
        input="\n".join(words),
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=240,
        check=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    codes, most = done.stdout.rsplit(" ", 1)
    assert codes == str([2] * len(words)), done.stderr
    assert int(most) < 400_000  # kB


def test_links_are_followed_to_files_only(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    target = tmp_path / "elsewhere/mine.h5"
    target.write_text("mine")
    (tmp_path / "out.h5").symlink_to(target)
    with pytest.raises(UserError, match=r"out\.h5 exists; say --force"), replace_file(tmp_path / "out.h5", force=False):
        pass
    assert target.read_text() == "mine"
    with replace_file(tmp_path / "out.h5", force=True) as place:
        place.write_text("new")
    assert target.read_text() == "new"
    assert (tmp_path / "out.h5").is_symlink()
    assert os.listdir(tmp_path / "elsewhere") == ["mine.h5"]


def test_a_byte_order_mark_is_no_mistake(tmp_path):
    (tmp_path / "study.toml").write_bytes(b"\xef\xbb\xbfseed = 4")
    assert read_experiment(tmp_path / "study.toml") == {"seed": 4}


def test_keys_and_values_of_any_kind_come_back():
    table = {"problem": {"arguments": {"a b": 1, "": {"x.y": "\x7f\n\udcff"}, "list": [{"é": True}]}}}
    assert from_toml(to_toml(table), "this") == table


def test_names_of_hdf5_need_not_be_text(tmp_path):
    content = hostile.h5_of(**hostile.GOOD | {"extra": hostile.Y})
    (tmp_path / "x.h5").write_bytes(content.replace(b"extra", b"\xffxtra"))
    assert Data.build({"name": "file", "path": str(tmp_path / "x.h5")}, "data").load(0, "float64").m == 3
