"""The measure of a run: what it costs to get somewhere, or how far it gets."""

import math
import re

import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.experiment.stop import Stop
from mpifed.results.result import Result
from mpifed.sweeps.measure import FAILED, Score, parsed

GRADIENT = Stop(gradient=1e-3)
CURVE = [8.0, 4.0, 0.5, 2.0, 0.4, 0.2]


def result(status="finished", reason="gradient: 1e-4 <= 1e-3"):
    rounds = {
        "round": np.arange(6),
        "objective": np.array(CURVE),
        "grad_norm_sq": np.array(CURVE) / 100,
        "accuracy": np.array([0.1, 0.5, np.nan, 0.7, 0.8, np.nan]),
        "bytes_up": 10.0 * np.arange(6),
        "bytes_down": 20.0 * np.arange(6),
    }
    attrs = {"status": status, "stop_reason": reason}
    return Result("one.h5", attrs, rounds, {}, {}, np.zeros((0, 0)), None, None, {})


def test_the_value_of_a_measure():
    values = {"rounds": 5.0, "bytes": 150.0, "objective": 0.2, "accuracy": -0.8}  # less is better
    values |= {"rounds to objective <= 1": 2.0, "rounds to objective <= 1 for good": 4.0}
    values |= {"bytes to objective <= 1": 60.0, "rounds to accuracy >= 0.7": 3.0}
    values |= {"rounds to objective <= 0.1": math.inf, "rounds to objective <= 0.1 for good": math.inf}
    values["rounds to objective <= 9 for good"] = 0.0
    assert {text: parsed(text, GRADIENT).score(result()).value for text in values} == values


def test_a_run_that_does_not_get_there_is_judged_by_how_near_it_came_and_one_that_failed_has_no_value():
    score = parsed("rounds to objective <= 0.1", GRADIENT).score(result())
    assert score == Score(math.inf, np.mean(CURVE))
    at_limit = parsed("rounds", GRADIENT).score(result(reason="rounds: 5"))
    assert at_limit == Score(math.inf, np.mean(CURVE))
    assert parsed("rounds", GRADIENT).score(result(status="failed")) == FAILED


def test_a_measure_that_cannot_be_is_refused():
    for text, stop, sentence in (
        ("round", GRADIENT, "unknown measure 'round'; did you mean 'rounds'?"),
        ("rounds to loss <= 1", GRADIENT, "unknown measure 'loss'"),
        ("rounds to objective < 1", GRADIENT, "write NAME or NAME to NAME <= NUMBER"),
        ("rounds to objective <= low", GRADIENT, "low is not a number"),
        ("rounds", Stop(), "the study has no stop rule"),
        ("rounds to objective_gap <= 1", GRADIENT, "objective_gap needs stop.optimum"),
    ):
        with pytest.raises(UserError, match=re.escape(sentence)):
            parsed(text, stop)
    with pytest.raises(UserError, match=r"one\.h5 has no column personal_accuracy"):
        parsed("personal_accuracy", GRADIENT).score(result())
