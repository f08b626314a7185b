"""Random damage to experiments, data files, results and checkpoints: a reader answers or raises UserError, and soon.

MPIFED_FUZZ=100000 tries as many examples of each kind, at random; otherwise few, or with the slow tests more.
"""

import bz2
import contextlib
import gzip
import io
import os
import time

import hypothesis.strategies as st
import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings

from mpifed.core.errors import UserError
from mpifed.data import info
from mpifed.data.dataset import Data
from mpifed.data.labels import fit_labels
from mpifed.data.sources.public_images import read_idx
from mpifed.experiment import config
from mpifed.experiment.checkpoint import checkpoint_folder, read_checkpoint
from mpifed.federation.participation.selection import Replay
from mpifed.report.summary import show
from mpifed.results.result import load
from tests.helpers import hostile_files as hostile
from tests.helpers.commands import mpifed
from tests.hostile.test_refusals import result

SECONDS = 20
MANY = int(os.environ.get("MPIFED_FUZZ", "0"))
LAX = {"suppress_health_check": list(HealthCheck)}
FEW = settings(max_examples=MANY, derandomize=False, **LAX) if MANY else settings(**LAX)

STUDY = """seed = 3
rounds = 20
dtype = "float32"
problem = {name = "logistic", mu = 0.01}
selection = {name = "uniform", share = 0.5}
stop = {gradient = 1e-7, gradient_scale = "m^2"}
evaluate.every = 2
[data]
name = "linreg-noniid"
clients = 8
[algorithm]
name = "fedgia"
k0 = 5
H = "gram"
"""


def parquet():
    """A Parquet file with numbers and a column of text."""
    out = io.BytesIO()
    rng = np.random.default_rng(0)
    pq.write_table(pa.table({"a": rng.random(20), "b": rng.integers(9, size=20), "kind": WORDS}), out)
    return out.getvalue()


WORDS = ["yes", "no"] * 10
FILES = {
    "x.h5": hostile.h5_of(**hostile.GOOD),
    "s.h5": hostile.h5_of(**hostile.SPARSE),
    "x.npz": hostile.npz(**hostile.GOOD),
    "s.npz": hostile.npz(**hostile.SPARSE),
    "u.npz": hostile.zipped({f"{key}.npy": hostile.npy_of(value) for key, value in hostile.GOOD.items()}),
    "x.mat": hostile.mat(X=hostile.X, y=hostile.Y, sizes=hostile.SIZES),
    "s.mat": hostile.mat(X=hostile.CSR, y=hostile.Y),
    "u.mat": hostile.mat(False, X=hostile.X, y=hostile.Y),
    "us.mat": hostile.mat(False, X=hostile.CSR, y=hostile.Y),
    "x.csv": hostile.CSV,
    "words.csv": b"a,b,kind\n" + b"1,2,cat\n3,4,dog\n5,6,ant\n" * 4,
    "words.svm": b"cat 1:1 2:5\ndog 2:3\n" * 4,
    "words.npz": hostile.npz(**hostile.GOOD | {"y": np.array(WORDS)}),
    "words.h5": hostile.h5_of(**hostile.GOOD | {"y": WORDS}),
    "x.parquet": parquet(),
    "x.svm": hostile.SVM,
    "x.csv.gz": gzip.compress(hostile.CSV),
    "x.svm.bz2": bz2.compress(hostile.SVM),
}
POOLS = ("s.mat", "u.mat", "us.mat", "x.csv", "x.svm", "x.csv.gz", "x.svm.bz2", "words.csv", "words.svm", "x.parquet")
LIKE_OTHERS = ("u.npz", "u.mat", "words.npz", "words.svm", "x.csv.gz", "x.svm.bz2")  # read by the same lines
ODD = [bytes(8), b"\xff" * 8, b"\xff" * 7 + b"\x7f", bytes(7) + b"\x80", b"\0\0\0\0\1\0\0\0", b"-1\n,nan:"]


@st.composite
def damaged(draw, whole):
    """The bytes of a file with a few of them changed, taken out, put in or moved."""
    content = bytearray(whole)
    for _ in range(draw(st.integers(1, 6))):
        a, b = sorted((draw(st.integers(0, len(content))), draw(st.integers(0, len(content)))))
        match draw(st.sampled_from(["flip", "flip", "flip", "word", "cut", "drop", "double", "fill", "insert"])):
            case "flip" if a < len(content):
                content[a] ^= draw(st.integers(1, 255))
            case "word":
                content[a : a + 8] = draw(st.sampled_from(ODD))[: len(content) - a]
            case "cut":
                del content[a:]
            case "drop":
                del content[a : min(b, a + 64)]
            case "double":
                content[b:b] = content[a:b]
            case "fill":
                content[a : min(b, a + 16)] = bytes(min(b, a + 16) - a)
            case "insert":
                content[a:a] = draw(st.binary(min_size=1, max_size=16))
    return bytes(content)


def tried(call):
    """Whether ``call`` answers; a refusal is a sentence."""
    begun = time.process_time()
    try:
        call()
        return True
    except UserError:
        return False
    finally:
        assert time.process_time() - begun < SECONDS


def read(path):
    table = {"name": "file", "path": str(path)} | ({"clients": 3} if path.name in POOLS else {})
    dataset = Data.build(table, "data").load(0, "float64")
    info.describe(dataset, info.survey(dataset))
    for kind in ("classes", "binary"):
        with contextlib.suppress(ValueError):  # labels that are something else
            fit_labels(dataset, kind).rows(0, dataset.m)


READERS = {name: (content, read) for name, content in FILES.items()} | {
    "images": (hostile.IMAGES, lambda path: read_idx(path, 3)),
    "labels": (hostile.LABELS, lambda path: read_idx(path, 1)),
    "packed": (gzip.compress(hostile.IMAGES), lambda path: read_idx(path, 3)),
    "sel.npz": (
        hostile.npz(sel=np.arange(12).reshape(4, 3)),
        lambda path: Replay(path=str(path)).selector(0, 12, 4).select(1, 0),
    ),
    "out.h5": (result(lambda out: None), lambda path: show(load(path))),
    "study.toml": (STUDY.encode(), lambda path: config.experiment(config.read_experiment(path)).toml()),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LIKE_OTHERS else name for name in READERS]
)
def test_files_damaged_in_many_ways(name, tmp_path, monkeypatch):
    monkeypatch.setattr("mpifed.results.result.PATIENCE", ())
    path = tmp_path / name
    whole, reader = READERS[name]
    path.write_bytes(whole)
    assert tried(lambda: reader(path))

    @FEW
    @given(damaged(whole))
    def damage(content):
        path.write_bytes(content)
        tried(lambda: reader(path))

    damage()


SMALL = ["algorithm=fedadmm", "data.clients=13", "data.features=9", "rounds=4", "-q"]


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    """The result file of a run on two hosts, the files of its checkpoint and their content, for two seeds."""
    found = []
    for seed in (3, 4):
        path = tmp_path_factory.mktemp("checkpoint") / "out.h5"
        done = mpifed("run", *SMALL, f"seed={seed}", "-o", path, ranks=3)
        assert done.code == 0, done.err
        found.append(
            (path, {file.name: file.read_bytes() for file in checkpoint_folder(path).iterdir()}, restored(path))
        )
    return found


def restored(path):
    """Everything that resume takes from a checkpoint, as bytes; None where there is none."""
    saved = read_checkpoint(path)
    if saved is None:
        return None
    server, times = saved.read_server(config.experiment({"algorithm": {"name": "fedadmm"}}).algorithm)
    state = saved.read_clients(0, 13) | server._asdict() | {"times": times}
    return {
        name: (np.asarray(value).dtype, np.shape(value), np.asarray(value).tobytes()) for name, value in state.items()
    }, msgspec.json.encode(saved)


def tried_on(path, files, wanted):
    """Whether a checkpoint of these files is taken; then it holds what is wanted."""
    for file in checkpoint_folder(path).iterdir():
        file.unlink()
    for name, content in files.items():
        (checkpoint_folder(path) / name).write_bytes(content)
    found = []
    if answered := tried(lambda: found.append(restored(path))):
        assert found == [wanted]
    return answered


@pytest.mark.slow
def test_checkpoints_with_damage_another_digit_or_a_piece_in_the_place_of_another(checkpoints):
    (path, files, whole), (_, others, _) = checkpoints

    @FEW
    @given(st.data())
    def damage(data):
        name = data.draw(st.sampled_from(sorted(files)))
        content = data.draw(damaged(files[name]))
        tried_on(path, files | {name: content}, whole)

    damage()
    assert tried_on(path, files, whole)
    assert tried_on(path, files | {"state.json.part": b"{", "1-0.npz": b"of an earlier one"}, whole)
    state = files["state.json"]
    for place in [place for place, byte in enumerate(state) if chr(byte).isdigit()]:
        digit = b"%d" % ((int(state[place : place + 1]) + 1) % 10) if place < len(state) - 10 else b"g"
        assert not tried_on(path, files | {"state.json": state[:place] + digit + state[place + 1 :]}, whole)
    plain = hostile.npy_of(np.arange(9.0))
    for name in files:
        for content in (*files.values(), *others.values(), b"", plain, files[name] + b"\n"):
            assert tried_on(path, files | {name: content}, whole) == (content == files[name])


ODD_VALUES = """true [] {} [[1]] {a=1} 1979-05-27 'fedavg' 'all' "\\u0000" inf 0x10 1e400"""
VALUES = st.one_of(
    st.integers().map(str), st.floats().map(str), st.text(max_size=9), st.sampled_from(ODD_VALUES.split())
)
SOME_KEYS = """seed data data.name data.clients data.partition data.partition.name problem problem.hidden algorithm
algorithm.k0 algorithm.name algorithm.solver selection.count stop evaluate.every system system.name checkpoint
record.personal problem.arguments.a algorithm.step"""
KEYS = st.one_of(st.text(max_size=9), st.sampled_from(SOME_KEYS.split()))


@FEW
@given(st.lists(st.one_of(st.sampled_from(STUDY.splitlines()), st.tuples(KEYS, VALUES).map(" = ".join)), max_size=12))
def test_lines_of_experiment_files(lines):
    tried(lambda: config.experiment(config.from_toml("\n".join(lines), "this")).toml())


@FEW
@given(st.lists(st.tuples(KEYS, VALUES).map("=".join), max_size=4))
def test_overrides(words):
    tried(lambda: config.experiment(config.override({}, words)).toml())
