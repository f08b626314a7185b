"""A second opinion: small cases with exactly known trajectories, kept outside the repository in ../shared/oracles."""

from __future__ import annotations

import sys
import tomllib

import pytest

from tests.helpers.commands import SHARED, execute

from .study import RTOL, methods

FOLDER = SHARED / "oracles"
STUDIES = sorted(FOLDER.glob("*/study.toml"))


@pytest.mark.slow
@pytest.mark.skipif(not STUDIES, reason=f"{FOLDER} is missing: the second opinion is kept outside the repository")
@pytest.mark.parametrize("ranks", [None, 4])
def test_known_trajectories(ranks, tmp_path):
    known = methods()
    cases = [s.parent for s in STUDIES if tomllib.loads(s.read_text())["algorithm"]["name"] in known]
    options = [] if ranks is None else ["--ranks", str(ranks)]
    done = execute([sys.executable, FOLDER / "check.py", *cases, "--rtol", str(RTOL), *options], 300, tmp_path)
    assert done.code == 0, done.out
    assert done.out.count(": pass") == len(cases)
