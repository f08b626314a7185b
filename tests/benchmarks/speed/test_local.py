"""Local work is compared with a plain loop that does the same, and with another working tree."""

from __future__ import annotations

import re
import sys
from unittest.mock import patch

import pytest

from benchmarks.speed import local
from benchmarks.speed.plain import METHODS
from tests.helpers.commands import ROOT, execute


@pytest.mark.parametrize("method", METHODS)
def test_the_loop_does_what_the_method_does(method):
    with patch.dict(local.SIZES, small=(7, 12, 5)):
        assert local.deviation(local.Case(method, "small")) < 1e-5


def test_every_loop_is_in_the_table():
    assert set(METHODS) == {*local.WHOLE, *local.BATCHES}


@pytest.mark.slow
def test_two_trees_are_measured_in_turn():
    words = ["--methods", "fedavg", "--sizes", "small", "--rounds", "2", "--repeat", "1", "--before", ROOT]
    done = execute([sys.executable, "-m", "benchmarks.speed.local", *words], 60, cwd=ROOT)
    assert done.code == 0, done.err
    head, line = done.out.splitlines()
    assert " ".join(head.split()) == "method size ours ms loop ms ours : loop deviation before gained"
    assert re.fullmatch(r"fedavg +small( +\d+\.\d+){3} +\d\.\de-\d\d( +\d+\.\d+){2}", line)


def test_the_mpifed_of_the_other_tree_is_measured(tmp_path):
    (tmp_path / "mpifed").mkdir()
    (tmp_path / "mpifed" / "__init__.py").write_text("raise RuntimeError('it is this one')")
    with pytest.raises(SystemExit, match=rf"the rounds of {tmp_path} ended with code 1\n(.*\n)*.*it is this one"):
        local.elsewhere(tmp_path, local.Case("fedavg", "small"), 2)
