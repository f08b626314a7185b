"""mpifed against plain loops over clients: every method, to 1e-9."""

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from mpifed.algorithms.bases.algorithm import Algorithm

from .cases import CASES
from .study import RTOL, computed, deviations, expected, oracle, recorded, right

FOLDER = Path(__file__).parent
THRESHOLDS = {
    "fedadmm": ("eps0", "nu"),
    "fedadmm-insa": ("mu", "c"),
    "marina": ("p",),
    "newton": ("c",),
}  # inner tests, a coin, line searches
NUMBERS = ("objective", "grad_norm_sq", "x", "personal")  # what constants move
every = pytest.mark.parametrize("k", range(len(CASES)), ids=[str(case) for case in CASES])


def check(wanted, found):
    """Every quantity is within RTOL."""
    wrong = {key: value for key, value in deviations(wanted, found).items() if not value <= RTOL}
    assert not wrong, f"relative deviations above {RTOL}: {wrong}"


@every
def test_equals_its_oracle(k):
    check(right(k), computed(CASES[k]))


def some(step=8):
    """One case of so many; the others are slow."""
    for k, case in enumerate(CASES):
        yield pytest.param(k, id=str(case), marks=[pytest.mark.slow] if k % step else [])


@pytest.mark.parametrize("k", [*some()])
def test_so_does_the_file_of_a_whole_run(k, tmp_path):
    wanted = dict(right(k))
    if "personal" in wanted:
        wanted["personal"] = wanted["personal"][-1]
    check(wanted, recorded(CASES[k], tmp_path))


def constants(case):
    """Options that are numbers. Thresholds are left out: they move nothing until they are crossed."""
    left_out = THRESHOLDS.get(case.method, ())
    return [key for key, value in case.options.items() if isinstance(value, float) and key not in left_out]


@every
def test_a_constant_off_by_one_percent_is_noticed(k):
    case, wanted = CASES[k], {key: value for key, value in right(k).items() if key in NUMBERS}
    for key in constants(case):
        with pytest.raises(AssertionError, match="relative deviations"):
            check(wanted, expected(case, **{key: 1.01 * case.options[key]}))
    for key in wanted:
        with pytest.raises(AssertionError, match=key):
            check(wanted, wanted | {key: wanted[key] * (1 + 1e-8)})


def test_a_number_that_is_not_finite_is_noticed():
    with pytest.raises(AssertionError, match="objective"):
        check(right(0), right(0) | {"objective": right(0)["objective"] * np.nan})


def test_every_method_has_an_oracle_and_two_cases():
    cases = Counter(case.method for case in CASES)
    for name in Algorithm.choices:
        module = name.replace("-", "_")
        assert (FOLDER / f"{module}.py").exists(), (
            f"write tests/oracles/{module}.py: {name} as a plain loop, from its paper"
        )
        assert callable(oracle(name).run)
        assert cases[name] >= 2, f"{name} needs two cases in tests/oracles/cases.py"
