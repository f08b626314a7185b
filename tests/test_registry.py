"""A new method costs one file: put into the folder, it is listed, described, run, drawn and tested."""

import shutil
import sys

import pytest

from tests.helpers.commands import ROOT, execute

pytestmark = pytest.mark.slow

METHOD = '''"""Halved, the method of A. Author, "A title", arXiv:2401.00001 (2024)."""

from typing import NamedTuple

from mpifed.algorithms.parts import PlotStyle
from mpifed.extend import Algorithm, Array, Participation, Unsupported


class Client(NamedTuple):
    pass


class Server(NamedTuple):
    x: Array  # (n,) model


class Halved(Algorithm, tag="halved"):
    """Gradient descent with the step size 1/2.

    x⁺ = x − mean ∇f_i(x)/2.  Source: section 1.
    """

    title = "Halved GD"
    plot_style = PlotStyle("sky", 1, 3)
    theorem = Unsupported("it is an example")
    participation = Participation.ALL

    def init_client(self, f):
        return Client()

    def init_server(self, fed):
        return Server(fed.initial())

    def round(self, fed, server):
        return Server(server.x - fed.mean(self.gradient, server.x) / 2)

    def gradient(self, f, client, x):
        return client, f.grad(x)
'''
DRAWN = """from mpifed.report import names, palette
print(names.method_title('halved'), palette.method_style('halved').colour)"""


def test_it_is_listed_described_run_drawn_and_tested_and_has_a_page(tmp_path):
    """In a copy of the program with one file more, of which the lists and pages are written."""
    for folder in ("mpifed", "docs", "tests", "benchmarks"):
        shutil.copytree(ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "*.png"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "mpifed" / "algorithms" / "halved.py").write_text(METHOD, "utf-8")

    def python(*words):
        done = execute([sys.executable, *words], 300, tmp_path, PYTHONPATH=str(tmp_path))
        assert done.code == 0, done.err
        return done.out

    python("docs/build.py")
    assert "halved" in python("-m", "mpifed", "list", "algorithms").split()
    assert "x⁺ = x − mean ∇f_i(x)/2." in python("-m", "mpifed", "describe", "halved")
    assert "finished" in python("-m", "mpifed", "run", "algorithm=halved", "data.clients=4", "rounds=2", "-o", "out.h5")
    assert python("-c", DRAWN).split("\n")[0] == "Halved GD #56B4E9"
    assert "arXiv:2401.00001" in (tmp_path / "docs/reference/algorithms/halved.md").read_text("utf-8")
    batteries = ("tests/algorithms/test_base.py", "tests/experiment/test_matching.py")
    assert "[halved]" in python("-m", "pytest", "--collect-only", "-q", "-n", "0", "-m", "", *batteries)
