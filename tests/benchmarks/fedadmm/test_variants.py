"""The variants and tolerances of the authors' programs."""

from __future__ import annotations

import math

import pytest

import mpifed
from benchmarks import bench
from benchmarks.fedadmm import measures

STUDY = {"data": {"clients": 8, "features": 5}, "rounds": 4, "stop": {"gradient": 0.0}}


def test_the_program_of_2022_divides_r0_by_a_logarithm():
    ours = {"name": "fedadmm", "k0": 6, "r0": 0.2 / math.log10(15), "lagrangian": True}
    theirs = ours | {"name": "benchmarks.fedadmm.variants:FedADMM", "r0": 0.2}
    one, other = (mpifed.run(STUDY | {"algorithm": algorithm}) for algorithm in (ours, theirs))
    assert one.x == pytest.approx(other.x, rel=1e-13)
    assert one.rounds["lagrangian"] == pytest.approx(other.rounds["lagrangian"], rel=1e-13)


def test_the_program_of_2023_takes_a_smaller_r():
    data = {"name": "gaussian", "clients": 6, "features": 4}
    problems = ({"name": name, "mu": 0.0} for name in ("logistic", "benchmarks.fedadmm.variants:Fifth"))
    algorithm = {"name": "fedgia", "t": 1.0, "H": "zero", "k0": 2}  # a gradient step of 1/(t max r_i)
    study = STUDY | {"data": data, "algorithm": algorithm, "rounds": 1}
    one, other = (mpifed.run(study | {"problem": problem}) for problem in problems)
    assert other.x == pytest.approx(1.25 * one.x, rel=1e-12)


@pytest.mark.parametrize(
    ("block", "clients", "expected"),
    [
        ("Example 5.1 as printed", 32, lambda d: 5e-4 * 100 / d),
        ("Example 5.1, program of 2022", 32, lambda d: 5e-5 * 100 / d),
        ("Example 5.1, program of 2022", 160, lambda d: 5e-5 * 100 / d),
        ("Example 5.1, program of 2023", 32, lambda d: 2e-3 * 100 * 32 / d),
    ],
)
def test_figure_4_counts_rounds_with_the_tolerance_of_the_reading_and_the_run(block, clients, expected):
    found = next(one for one in bench.read("fedadmm/figure4").block if one.name == block)
    study = bench.merge(found.study, {"rounds": 1, "data": {"clients": clients}, "algorithm": "fedavg"})
    result = mpifed.run(study)
    d = float(result.clients["samples"].sum())
    assert measures.tolerance(result) == pytest.approx(expected(d), rel=1e-12)
    assert measures.tolerance(result) >= study["stop"]["gradient"]  # so that the run gets there
