"""A new method costs one file: put into the folder, it is listed, described, run, drawn and tested."""

import os
import shutil
import subprocess
import sys

import pytest

from tests.helpers.commands import ROOT

pytestmark = pytest.mark.slow

METHOD = '''"""Halved, the method of A. Author, "A title", arXiv:2401.00001 (2024)."""

from typing import NamedTuple

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.core.typing import Array
from mpifed.federation.traits import PlotStyle, Unsupported, Participation


class Client(NamedTuple):
    pass


class Server(NamedTuple):
    x: Array  # (n,) model


class Halved(Algorithm, tag="halved"):
    """Gradient descent with the step size 1/2.

    x⁺ = x − mean ∇f_i(x)/2.  Source: section 1.
    """

    title = "Halved GD"
    look = Look("sky", 1, 3)
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


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """Start Python in a copy of the program with one file more, of which the lists and pages have been written."""
    copy = tmp_path_factory.mktemp("program")
    for folder in ("mpifed", "docs", "tests", "benchmarks"):
        shutil.copytree(ROOT / folder, copy / folder, ignore=shutil.ignore_patterns("__pycache__", "*.png"))
    shutil.copy(ROOT / "pyproject.toml", copy)
    (copy / "mpifed" / "algorithms" / "halved.py").write_text(METHOD, "utf-8")

    def python(*words):
        done = subprocess.run(
            [sys.executable, *words],
            cwd=copy,
            env=os.environ | {"PYTHONPATH": str(copy)},
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    python("docs/build.py")
    return python


def test_it_is_listed_described_and_run_and_has_a_name_a_colour_in_pictures_and_a_page(program):
    assert "halved" in program("-m", "mpifed", "list", "algorithms").split()
    assert "x⁺ = x − mean ∇f_i(x)/2." in program("-m", "mpifed", "describe", "halved")
    words = ("algorithm=halved", "data.clients=4", "rounds=2", "-o", "out.h5")
    assert "finished" in program("-m", "mpifed", "run", *words)
    assert program("-c", DRAWN).split("\n")[0] == "Halved GD #56B4E9"
    page = program("-c", "print(open('docs/reference/algorithms/halved.md', encoding='utf-8').read())")
    assert "arXiv:2401.00001" in page


def test_the_batteries_of_all_methods_and_of_all_pairs_have_it(program):
    words = ("-m", "pytest", "--collect-only", "-q", "-n", "0", "-p", "no:cacheprovider", "-m", "")
    collected = program(*words, "tests/algorithms/test_base.py", "tests/experiment/test_matching.py")
    assert "[halved]" in collected
