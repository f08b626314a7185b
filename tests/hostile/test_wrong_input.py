"""Wrong input ends every rank with exit code 2 and one sentence that names key, value and what would be right."""

from __future__ import annotations

import numpy as np
import pytest

from tests.helpers.commands import mpifed

SMALL = ["data.clients=6", "data.features=5", "rounds=2"]


def faulty(folder):
    """Fill a folder with files, each with one fault."""
    rng = np.random.default_rng(0)
    X, y, sizes = rng.normal(size=(20, 4)), rng.integers(0, 2, 20).astype(float), np.array([5, 7, 8])
    hole = X.copy()
    hole[3, 1] = np.nan
    good = {"X": X, "y": y, "sizes": sizes}
    faults = {
        "good": {},
        "sizes": {"sizes": sizes + 1},
        "nan": {"X": hole},
        "labels": {"y": y / 2},
        "none": {"sizes": np.array([0, 10, 10])},
        "short": {"y": y[:7]},
        "objects": {"X": X.astype(object)},
    }
    for name, fault in faults.items():
        np.savez(folder / f"{name}.npz", **good | fault)
    rows = {"sel": np.array([[0, 1], [1, 2]]), "far": np.array([[0, 99]] * 9), "half": np.array([[0.5]] * 9)}
    np.savez(folder / "sel.npz", **rows)
    (folder / "cut.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(40))
    (folder / "bad.toml").write_text("rounds = = 3")
    (folder / "odd.toml").write_text("[algoritm]\nname = 'fedgia'")
    (folder / "there.h5").write_text("mine")
    return folder


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return faulty(tmp_path_factory.mktemp("faulty"))


def data(name, *more):
    return ["data=file", f"data.path={name}", "problem=logistic", "rounds=3", *more]


REPLAY = ["selection=replay", "selection.path=sel.npz"]
WRONG = {
    "unknown key": (["algorithm.k1=3"], ["algorithm.k1", "k0"]),
    "unknown table": (["odd.toml"], ["algoritm", "algorithm"]),
    "misspelt algorithm": (["algorithm=fedadm"], ["fedadm", "did you mean 'fedadmm'"]),
    "misspelt problem": (["problem=logstic"], ["logstic", "logistic"]),
    "misspelt data": (["data=qott"], ["qott", "qot"]),
    "k0 of 0": (["algorithm.k0=0"], ["algorithm.k0 = 0", ">= 1"]),
    "k0 a word": (["algorithm.k0=many"], ["algorithm.k0", "many", "whole number"]),
    "share of 2": (["selection.share=2"], ["selection.share = 2", "<= 1"]),
    "count above m": ([*SMALL, "selection.count=7"], ["selection.count = 7", "6 clients"]),
    "negative rounds": (["rounds=-1"], ["rounds = -1", ">= 0"]),
    "negative seed": (["seed=-1"], ["seed = -1", ">= 0"]),
    "unknown dtype": (["dtype=float16"], ["dtype", "float16", "float32"]),
    "no clients": (["data.clients=0"], ["data.clients = 0", ">= 1"]),
    "no TOML": (["bad.toml"], ["bad.toml", "not valid TOML"]),
    "missing study": (["nothing.toml"], ["nothing.toml", "No such file"]),
    "two studies": (["bad.toml", "odd.toml"], ["one experiment file", "2"]),
    "missing data file": (data("away.npz"), ["away.npz"]),
    "sizes that do not add up": (data("sizes.npz"), ["sizes.npz", "sizes"]),
    "a client without samples": (data("none.npz"), ["none.npz", "sizes"]),
    "fewer labels than rows": (data("short.npz"), ["short.npz", "y"]),
    "objects in X": (data("objects.npz"), ["objects.npz", "X"]),
    "NaN in X": (data("nan.npz"), ["nan.npz", "3"]),
    "labels outside {0, 1}": (data("labels.npz"), ["labels", "0.5", "0 and 1"]),
    "truncated HDF5": (data("cut.h5"), ["cut.h5"]),
    "clients do not agree": (data("good.npz", "data.clients=4"), ["clients", "4", "3"]),
    "replay too short": (data("good.npz", *REPLAY), ["sel.npz", "2 rows", "rounds = 3"]),
    "replay of strangers": (data("good.npz", *REPLAY, "selection.key=far"), ["far", "from 0 to 2"]),
    "replay of halves": (data("good.npz", *REPLAY, "selection.key=half"), ["half", "whole numbers"]),
    "replay without its array": (data("good.npz", *REPLAY, "selection.key=none"), ["none", "sel"]),
    "a problem that lacks what is needed": (data("good.npz", "problem=quadratic"), ["quadratic", "client 0"]),
    "more ranks than clients": ([*SMALL[1:], "data.clients=1"], ["ranks are too many for", "start at most"]),
    "output folder missing": ([*SMALL, "-o", "no/where.h5"], ["no/where.h5"]),
    "output there already": ([*SMALL, "-o", "there.h5"], ["there.h5", "--force"]),
    "objective_gap without optimum": (["stop.objective_gap=0.1"], ["objective_gap", "optimum"]),
    "unknown option": (["--rounds", "3"], ["--rounds"]),
    "no value": (["rounds"], ["rounds"]),
}


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def one_sentence(name, done):
    """What the command said is the sentence of ``name``."""
    _, told = WRONG[name]
    assert len(done.err.strip().splitlines()) == 1, done.err
    assert not done.out
    assert all(word in done.err for word in told), done.err


@pytest.mark.parametrize("name", [name for name in WRONG if name != "more ranks than clients"])
def test_in_one_process(name, files):
    before = contents(files)
    done = mpifed("run", *WRONG[name][0], cwd=files)
    assert done.code == 2, done.err
    one_sentence(name, done)
    assert contents(files) == before


def test_the_sentence_and_the_exit_code_are_those_of_the_process(files):
    done = mpifed("run", "algorithm.k0=0", cwd=files, process=True)
    assert done.code == 2
    assert done.err == "mpifed: algorithm.k0 = 0 is wrong: it must be a whole number >= 1\n"
