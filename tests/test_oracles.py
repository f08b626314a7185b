"""Small cases with exactly known trajectories."""

from __future__ import annotations

import sys
import tomllib

import pytest
from conftest import SHARED, execute

from mpifed.algorithms.base import Algorithm

CASES = sorted(folder.parent for folder in (SHARED / "oracles").glob("*/study.toml"))
CASES = [
    case for case in CASES if tomllib.loads((case / "study.toml").read_text())["algorithm"]["name"] in Algorithm.choices
]


@pytest.mark.skipif(not CASES, reason="the cases with known answers are not beside this checkout")
@pytest.mark.parametrize("ranks", [None, 4])
def test_known_trajectories(ranks, tmp_path):
    options = [] if ranks is None else ["--ranks", str(ranks)]
    done = execute([sys.executable, SHARED / "oracles" / "check.py", *CASES, "--rtol", "1e-9", *options], 300, tmp_path)
    assert done.code == 0, done.out
    assert done.out.count(": pass") == len(CASES)
