"""A second opinion: small cases with exactly known trajectories, kept outside the repository in ../shared/oracles."""

import sys
import tomllib

import pytest

from mpifed.algorithms.bases.algorithm import Algorithm
from tests.helpers.commands import SHARED, execute

from .study import RTOL

FOLDER = SHARED / "oracles"
STUDIES = sorted(FOLDER.glob("*/study.toml"))


@pytest.mark.slow
@pytest.mark.skipif(not STUDIES, reason=f"{FOLDER} is missing: the second opinion is kept outside the repository")
@pytest.mark.parametrize("ranks", [None, 4])
def test_known_trajectories(ranks, tmp_path):
    cases = [s.parent for s in STUDIES if tomllib.loads(s.read_text())["algorithm"]["name"] in Algorithm.choices]
    options = [] if ranks is None else ["--ranks", str(ranks)]
    done = execute([sys.executable, FOLDER / "check.py", *cases, "--rtol", str(RTOL), *options], 300, tmp_path)
    assert done.code == 0, done.out
    assert done.out.count(": pass") == len(cases)
