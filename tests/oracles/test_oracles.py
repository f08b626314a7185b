"""mpifed against plain loops over clients: every method, to 1e-9."""

import sys
import tomllib
from collections import Counter

import pytest

from mpifed.algorithms.bases.algorithm import Algorithm
from tests.helpers.commands import SHARED, execute

from .cases import CASES
from .study import RTOL, computed, deviations, expected, oracle, recorded

SECOND = SHARED / "oracles"
STUDIES = sorted(SECOND.glob("*/study.toml"))
every = pytest.mark.parametrize("case", CASES, ids=str)


def check(right, found):
    """Every quantity is within RTOL."""
    wrong = {key: value for key, value in deviations(right, found).items() if not value <= RTOL}
    assert not wrong, f"relative deviations above {RTOL}: {wrong}"


@every
def test_equals_its_oracle(case):
    check(expected(case), computed(case))


def some(cases, step=8):
    """Every so many; the others are slow."""
    return [pytest.param(case, marks=pytest.mark.slow) if k % step else case for k, case in enumerate(cases)]


@pytest.mark.parametrize("case", some(CASES), ids=str)
def test_the_file_of_a_whole_run_equals_the_oracle_too(case, tmp_path):
    right = expected(case)
    if "personal" in right:
        right["personal"] = right["personal"][-1]
    check(right, recorded(case, tmp_path))


def test_every_method_has_an_oracle_and_two_cases():
    cases = Counter(case.method for case in CASES)
    for name in Algorithm.choices:
        assert oracle(name), f"write {name} as a plain loop, from its paper, into a family of tests/oracles"
        assert cases[name] >= 2, f"{name} needs two cases in tests/oracles/cases.py"


@pytest.mark.slow
@pytest.mark.skipif(not STUDIES, reason=f"{SECOND} is missing: the second opinion is kept outside the repository")
@pytest.mark.parametrize("ranks", [None, 4])
def test_known_trajectories(ranks, tmp_path):
    """A second opinion: small cases with exactly known trajectories, kept outside the repository."""
    cases = [s.parent for s in STUDIES if tomllib.loads(s.read_text())["algorithm"]["name"] in Algorithm.choices]
    options = [] if ranks is None else ["--ranks", str(ranks)]
    done = execute([sys.executable, SECOND / "check.py", *cases, "--rtol", str(RTOL), *options], 300, tmp_path)
    assert done.code == 0, done.out
    assert done.out.count(": pass") == len(cases)
