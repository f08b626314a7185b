"""Stop rules: a run ends when, and only when, a rule's formula says so."""

from statistics import variance

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpifed.core.errors import UserError
from mpifed.features.stop import StopRules, ran_out

positive = st.floats(1e-12, 1e3)
several = st.lists(positive, min_size=1, max_size=6)


def stops(stop, m=10, n=20, **columns):
    """The name of the rule that ends the run after these measurements, or None."""
    columns.setdefault("objective", [1.0])
    columns.setdefault("grad_norm_sq", [1.0])
    reason = stop.reason(columns, m, n)
    return reason and reason.split(":")[0]


def test_no_rule_stops_where_none_is_set():
    assert stops(StopRules(), objective=[0.0] * 9, grad_norm_sq=[0.0], accuracy=[1.0], elapsed_seconds=[1e9]) is None


@given(errors=several, bound=positive, share=st.just(0) | st.floats(1e-3, 2), m=st.integers(1, 100))
def test_gradient_of_which_the_relative_one_lowers_the_bound_by_the_error_of_round_zero(errors, bound, share, m):
    for name, scale in (("1", 1), ("m^2", m * m)):
        stop = StopRules(gradient=bound, gradient_relative=share, gradient_scale=name)
        least = min(bound, share * (errors[0] / scale)) if share else bound
        assert (stops(stop, m=m, grad_norm_sq=errors) == "gradient") == (errors[-1] / scale <= least)
    assert stops(StopRules(gradient_relative=0.5), grad_norm_sq=[1.0, 0.0]) is None


@given(values=several, bound=positive, optimum=st.floats(-10, 10))
def test_objective_gap_and_seconds(values, bound, optimum):
    assert (stops(StopRules(seconds=bound), elapsed_seconds=values) == "seconds") == (values[-1] >= bound)
    stop = StopRules(objective_gap=bound, optimum=optimum)
    assert (stops(stop, objective=values) == "objective_gap") == (values[-1] - optimum <= bound)


def test_objective_gap_needs_the_optimum():
    with pytest.raises(UserError, match=r"^stop: objective_gap needs optimum, the least value of f$"):
        StopRules.build({"objective_gap": 0.1}, "stop")
    assert stops(StopRules.build({"objective_gap": 0.1, "optimum": 0}, "stop"), objective=[0.05]) == "objective_gap"


@given(values=st.lists(st.floats(0, 1), min_size=1), least=st.floats(0.01, 1))
def test_accuracy(values, least):
    assert (stops(StopRules(accuracy=least), accuracy=values) == "accuracy") == (values[-1] >= least)
    assert stops(StopRules(accuracy=0.5)) is None  # a run that has none


@given(values=st.lists(st.floats(0, 3), min_size=1, max_size=7), factor=st.floats(1e-6, 0.5), n=st.integers(1, 50))
def test_variance_of_the_last_four(values, factor, n):
    holds = len(values) >= 4 and variance(values[-4:]) <= factor * n / (1 + values[-1])
    near = len(values) >= 4 and abs(variance(values[-4:]) - factor * n / (1 + values[-1])) < 1e-12
    assert near or (stops(StopRules(variance=factor), n=n, objective=values) == "variance") == holds


def test_the_first_rule_that_holds_ends_the_run():
    stop = StopRules(gradient=1e-9, accuracy=0.9, seconds=5.0)
    assert stops(stop, accuracy=[0.95], elapsed_seconds=[9.0]) == "accuracy"
    assert stops(stop, accuracy=[0.5], elapsed_seconds=[9.0]) == "seconds"
    assert stops(stop, accuracy=[0.5], elapsed_seconds=[1.0]) is None


def test_a_run_that_diverges_is_never_taken_for_converged():
    nan = [float("nan")]
    stop = StopRules(gradient=1.0, gradient_relative=0.1, objective_gap=1.0, optimum=0.0, accuracy=0.5, variance=1.0)
    assert stops(stop, objective=nan * 5, grad_norm_sq=nan * 5, accuracy=nan) is None


LOWER = {"gradient": 0.5, "gradient_relative": 0.1}
HIGHER = {"objective": [1.0, 1.0, 1.0, 2.0], "grad_norm_sq": [1.0, 1.0, 1.0, 2.0]}


@pytest.mark.parametrize(
    ("stop", "columns", "reason"),
    [
        ({"gradient": 0.5}, {"grad_norm_sq": [0.25]}, "gradient: ‖∇f‖² 0.25 <= 0.5"),
        ({"gradient": 0.5, "gradient_scale": "m^2"}, {"grad_norm_sq": [0.9]}, "gradient: ‖∇f‖²/m² 0.1 <= 0.5"),
        (LOWER, {"grad_norm_sq": [4.0, 0.3]}, "gradient: ‖∇f‖² 0.3 <= 0.4, 0.1 of round 0"),
        (LOWER, {"grad_norm_sq": [9.0, 0.3]}, "gradient: ‖∇f‖² 0.3 <= 0.5"),
        ({"objective_gap": 0.5, "optimum": 1.0}, {"objective": [1.25]}, "objective_gap: f − f* 0.25 <= 0.5"),
        ({"accuracy": 0.5}, {"accuracy": [0.75]}, "accuracy: 0.75 of test samples >= 0.5"),
        ({"variance": 0.5}, {"objective": [1.0] * 4}, "variance: that of the last four f 0 <= 1"),
        ({"rising": True}, HIGHER, "rising: f and ‖∇f‖² are above those of the three rounds before"),
        ({"seconds": 5.0}, {"elapsed_seconds": [6.0]}, "seconds: elapsed time 6 s >= 5 s"),
        ({"simulated_seconds": 5.0}, {"simulated_seconds": [6.0]}, "simulated_seconds: simulated time 6 s >= 5 s"),
    ],
)
def test_the_reason_names_its_quantity_and_the_numbers(stop, columns, reason):
    assert StopRules(**stop).reason({"objective": [1.0], "grad_norm_sq": [1.0]} | columns, 3, 4) == reason


def test_a_reason_tells_whether_rounds_or_time_ran_out():
    over = [rule for rule in ("rounds", *StopRules.__struct_fields__) if ran_out(f"{rule}: 40")]
    assert over == ["rounds", "seconds", "simulated_seconds"]
