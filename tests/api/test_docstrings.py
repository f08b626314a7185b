"""Every public name has a docstring with an example, and each example holds.

An example is a block of ``>>>``, as doctest runs it, or an expression of mpifed in the text: ``mpifed.load("out.h5")``.
"""

import doctest
import importlib.util
import inspect
import re
from operator import attrgetter
from typing import NamedTuple

import numpy as np
import pytest

import mpifed
from mpifed.checking import check as checking

INLINE = re.compile(r"``(mpifed\.\w[^`]*\))``")
ELSEWHERE = ("__version__", "extend.Array")  # a text and an alias: the docstrings of their modules speak of them
NAMES = [
    *(name for name in mpifed.__all__ if name not in ("extend", "theory")),
    *(f"extend.{name}" for name in mpifed.extend.__all__),
    *(f"theory.{name}" for name in mpifed.theory.__all__),
    *(f"algorithms.parts.{name}" for name in ("Optimizer", "ServerOptimizer", "Solver", "Step")),
]
LIKE_OTHERS = {  # whose examples run a study as those of other names do
    *(f"extend.{name}" for name in ("Block", "Distribution", "Federation", "Graph", "GraphFederation", "LinearModel")),
    *(f"algorithms.parts.{name}" for name in ("Optimizer", "ServerOptimizer", "Solver", "Step")),
    *("extend.Local", "extend.RobustMean", "theory.StudyConstants"),
}
EXTRAS = {"frame": "pandas", "table": "pandas", "plot": "matplotlib"}
STUDY = 'rounds = 2\nalgorithm = "fedavg"\ndata = {name = "gaussian", clients = 4, samples = 9, features = 3}\n'
SAYING = (
    "from mpifed.extend import Callback, Plugin\n\nclass Saying(Plugin, Callback):\n"
    "    def notes(self):\n        return ['this run says so']\n"
)
X = mpifed.extend.stream(0, "examples").standard_normal((60, 3))


def text(name):
    wanted = name.rpartition(".")[0] if name in ELSEWHERE else name
    return inspect.getdoc(attrgetter(wanted)(mpifed) if wanted else mpifed) or ""


def blocks(name):
    return doctest.DocTestParser().get_examples(text(name))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The files that examples speak of."""
    folder = tmp_path_factory.mktemp("examples")
    (folder / "study.toml").write_text(STUDY)
    (folder / "saying.py").write_text(SAYING)
    (folder / "results").mkdir()
    for path in ("out.h5", "results/0.h5"):
        mpifed.run(folder / "study.toml", path=folder / path)
    return folder


@pytest.fixture
def names(folder, monkeypatch):
    """What examples speak of: arrays, items and a data frame; in the folder with files.

    A check starts no ranks and no other process here, as it does in tests/contract.
    """
    monkeypatch.chdir(folder)
    monkeypatch.setattr(checking, "EVERY", checking.EVERY[:3])
    parts = [[(row, row.sum()) for row in part] for part in (X[:9], X[9:])]
    found = {"mpifed": mpifed, "np": np, "NamedTuple": NamedTuple, "X": X, "y": X.sum(axis=1)}
    if importlib.util.find_spec("pandas"):
        import pandas

        found["frame"] = pandas.DataFrame({"age": X[:, 0], "y": X[:, 1], "site": ["a", "b", "c"] * 20})
    return found | {"clients": [10, 20, 30], "train": parts, "test": parts}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in LIKE_OTHERS else ()) for name in NAMES]
)
def test_its_example_holds(name, names):
    if name in EXTRAS:
        pytest.importorskip(EXTRAS[name])
    examples = blocks(name)
    for source in INLINE.findall(text(name)):
        eval(source.replace("\n", " "), dict(names))
    said = []
    test = doctest.DocTest(examples, names | {"__name__": "__main__"}, name, None, None, None)
    failed = doctest.DocTestRunner(verbose=False).run(test, out=said.append).failed
    assert not failed, "".join(said)


def test_every_name_has_a_short_example_of_its_use():
    for name in NAMES:
        sources = [one.source for one in blocks(name)]
        lines = sum(len(source.splitlines()) for source in sources)
        own = re.compile(rf"\bmpifed\.{re.escape(name)}\b")
        assert any(map(own.search, [*sources, *INLINE.findall(text(name))])), f"{name} has no example of its use"
        assert lines <= 13, f"{name}: {lines} lines"
