"""The page of a certificate: sides as they are, factors close to 1, what a run had, lines that fit the screen."""

import math

import pytest

import mpifed
from mpifed.report.certificate import format_certificate, format_factor, format_sides, measure_bound
from mpifed.report.tables import WIDTH
from mpifed.theory.statements import Bound, Certificate, Condition


def test_a_condition_that_fails_is_written_as_it_is_and_a_factor_close_to_1_is_not_rounded():
    given = [(0.3, ">=", 0.2), (0.1, ">=", 0.2), (0.2, "<", 0.2), (2, "=", 1), (math.nan, ">", 1)]
    told = ["0.3 >= 0.2", "0.1 < 0.2", "0.2 >= 0.2", "2 ≠ 1", "? > 1"]
    assert [format_sides(Condition.of("", *parts, "")) for parts in given] == told
    assert list(map(format_factor, (0.5, 1 - 1e-7, 1.0, math.nan))) == ["0.5", "1 − 1e-07", "1", "not known"]


def test_lines_fit_the_screen():
    conditions = [Condition.of("a condition with a name of some length", 1.0, ">", 2.0, "a source " * 12)]
    bounds = [Bound("what is bounded", "a formula " * 14, 0.5, "Theorem 1", "factor", "objective_gap")]
    text = format_certificate("fedgia", Certificate("Theorem 1", conditions, bounds, ["a remark " * 30]), 10)
    brief = mpifed.run({"algorithm": {"name": "fedprox", "certify": True}, "data": "gaussian"}, rounds=1).summary()
    assert max(map(len, [*text.splitlines(), *brief.splitlines()])) <= WIDTH
    assert "0 of 1 hold, 1 do not" in text
    assert "after R = 10 rounds" in text


def test_what_a_run_had_stands_beside_the_bound():
    study = {"data": "quadratic", "data.clients": 4, "rounds": 60, "algorithm": "feddcd", "algorithm.certify": True}
    result = mpifed.run(study, {"algorithm.dual": True})
    certificate = result.certificate
    value, how = measure_bound(certificate.bounds[0], certificate, result)
    gaps = result.rounds["dual_objective"] + 4 * certificate.constants.f
    assert "G − G*" in how
    assert value == pytest.approx((gaps[40] / gaps[20]) ** (1 / 20), rel=0.1)
    assert measure_bound(certificate.bounds[1], certificate, result) is None, "it is about no recorded column"
    text = format_certificate("feddcd", certificate, 60, result)
    assert f"in this run: {float(f'{value:.4g}'):g}, factor per round of G − G*" in " ".join(text.split())
