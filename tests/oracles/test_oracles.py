"""mpifed against plain loops over clients: every method, to 1e-9."""

from __future__ import annotations

import importlib
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from .cases import CASES
from .study import RTOL, computed, deviations, expected, methods

FOLDER = Path(__file__).parent
THRESHOLDS = {
    "fedadmm": ("eps0", "nu"),
    "fedadmm-insa": ("mu", "c"),
    "marina": ("p",),
    "newton": ("c",),
}  # inner tests, a coin, line searches


def check(right, **found):
    """Every quantity is within RTOL."""
    wrong = {key: value for key, value in deviations(right, **found).items() if not value <= RTOL}
    assert not wrong, f"relative deviations above {RTOL}: {wrong}"


@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_its_oracle(case, tmp_path):
    right, result = expected(case), computed(case, tmp_path)
    more = {key: result.rounds[key] for key in right.keys() - {"objective", "grad_norm_sq", "x", "personal"}}
    if "personal" in right:
        more["personal"] = result.personal
    check(right, objective=result.rounds["objective"], grad_norm_sq=result.rounds["grad_norm_sq"], x=result.x, **more)


def constants(case):
    """Options that are numbers. Thresholds are left out: they move nothing until they are crossed."""
    left_out = THRESHOLDS.get(case.method, ())
    return [key for key, value in case.options.items() if isinstance(value, float) and key not in left_out]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_constant_off_by_one_percent_is_noticed(case):
    right = expected(case)
    for key in constants(case):
        other = expected(case, **{key: 1.01 * case.options[key]})
        own = {"personal": other["personal"]} if "personal" in right else {}
        with pytest.raises(AssertionError, match="relative deviations"):
            check(right, objective=other["objective"], grad_norm_sq=other["grad_norm_sq"], x=other["x"][-1], **own)
    for key in ("objective", "grad_norm_sq", "x"):
        moved = {name: right[name] for name in ("objective", "grad_norm_sq")} | {"x": right["x"][-1]}
        moved[key] = moved[key] * (1 + 1e-8)
        with pytest.raises(AssertionError, match=key):
            check(right, **moved)


def test_a_number_that_is_not_finite_is_noticed():
    right = expected(CASES[0])
    with pytest.raises(AssertionError, match="objective"):
        check(right, objective=right["objective"] * np.nan, grad_norm_sq=right["grad_norm_sq"], x=right["x"][-1])


def test_every_method_has_an_oracle_and_two_cases():
    cases = Counter(case.method for case in CASES)
    for name in methods():
        module = name.replace("-", "_")
        assert (FOLDER / f"{module}.py").exists(), (
            f"write tests/oracles/{module}.py: {name} as a plain loop, from its paper"
        )
        assert callable(importlib.import_module(f".{module}", __package__).run)
        assert cases[name] >= 2, f"{name} needs two cases in tests/oracles/cases.py"
