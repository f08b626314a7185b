"""FedADMM: its theorems on repeated iterates, and the variants and tolerances of the authors' programs."""

import math
from functools import cache

import pytest

import mpifed
from benchmarks import bench
from benchmarks.fedadmm import theory

LINEAR = {"data": {"name": "linreg-noniid", "clients": 8, "features": 6}, "problem": "least-squares"}
STUDY = {"data": {"clients": 8, "features": 5}, "rounds": 4, "stop": {"gradient": 0.0}}
AT_ONCE = {"r0": 0.2, "inner_max": 1, "eps0": 1e-9}  # too small a penalty, and a single inner step


@cache
def fedadmm(rounds=20, share=0.5, **algorithm):
    options = {"name": "fedadmm", "k0": 3, "r0": 3.0, "eps0": 1e-6, "inner_max": 100, "lagrangian": True}
    selection = {"name": "cover", "share": share}
    table = {"rounds": rounds, "algorithm": options | algorithm, "selection": selection, "stop": {"gradient": 0.0}}
    return mpifed.run(LINEAR | table)


@pytest.mark.parametrize("options", [{}, {"start": "-gradient", "r0": 0.2, "inner_max": 3, "k0": 10}], ids=str)
def test_the_iterates_are_those_of_the_run(options):
    """The record has 𝓛 at the next model, so that the first descent (7.13), (σ/2)‖Δw‖², lies between."""
    result = fedadmm(**options)
    found, k0 = theory.trace(result), result.config["algorithm"]["k0"]
    assert len(found.lagrangian) == 20 * k0 + 1
    assert found.objective[1::k0] == pytest.approx(result.rounds["objective"][:-1], rel=1e-10)
    assert (result.rounds["lagrangian"][:-1] <= found.lagrangian[:-1:k0] + 1e-10).all()


def test_theorem_3_1_and_lemma_4_1_hold_from_the_negative_gradients():
    result = fedadmm(start="-gradient")
    assert theory.condition(result) == pytest.approx(3.0)
    assert theory.unmet(result) <= 1
    assert 0 < theory.inner(result) <= 1
    assert theory.lemma_first(result) <= 0
    assert max(measure(result) for measure in (theory.lemma, theory.rises, theory.below)) <= 1e-12
    low = fedadmm(**AT_ONCE)  # below its condition the theorem says nothing
    assert math.isnan(theory.inner(low))
    assert theory.unmet(low) > 1


def test_lemma_4_1_fails_at_the_start_from_zero_and_where_a_client_is_first_selected():
    """With half of the clients a round, the second round selects those of which π_i is still 0."""
    whole = fedadmm(share=1.0)
    assert theory.lemma_first(whole) > 1e-3
    assert theory.lemma(whole) <= 1e-12
    found = theory.excess(fedadmm())
    assert found[3] > 1e-3
    assert found[6:].max() <= 1e-12


@pytest.mark.slow
def test_theorem_4_1_holds_in_the_limit():
    result = fedadmm(rounds=160)
    assert theory.apart(result) <= 1e-9
    assert max(theory.MEASURES[name](result) for name in ("gradients_left", "optimality_left")) <= 1e-4


def test_the_program_of_2022_divides_r0_by_a_logarithm_and_that_of_2023_takes_a_smaller_r():
    ours = {"name": "fedadmm", "k0": 6, "r0": 0.2 / math.log10(15), "lagrangian": True}
    theirs = ours | {"name": "benchmarks.fedadmm.variants:FedADMM", "r0": 0.2}
    one, other = (mpifed.run(STUDY | {"algorithm": algorithm}) for algorithm in (ours, theirs))
    assert one.x == pytest.approx(other.x, rel=1e-13)
    assert one.rounds["lagrangian"] == pytest.approx(other.rounds["lagrangian"], rel=1e-13)
    algorithm = {"name": "fedgia", "t": 1.0, "H": "zero", "k0": 2}  # a gradient step of 1/(t max r_i)
    study = {"data": {"name": "gaussian", "clients": 6, "features": 4}, "algorithm": algorithm, "rounds": 1}
    problems = ({"name": name, "mu": 0.0} for name in ("logistic", "benchmarks.fedadmm.variants:Fifth"))
    one, other = (mpifed.run(STUDY | study | {"problem": problem}) for problem in problems)
    assert other.x == pytest.approx(1.25 * one.x, rel=1e-12)


PROGRAMS = [(", program of 2022", 160, 5e-3), (", program of 2023", 32, 0.2 * 32)]
PROGRAMS += [pytest.param(", program of 2022", 32, 5e-3, marks=pytest.mark.slow)]


@pytest.mark.parametrize(("reading", "clients", "expected"), [(" as printed", 32, 5e-2), *PROGRAMS])
def test_figure_4_counts_rounds_with_the_tolerance_of_the_reading_and_the_run(reading, clients, expected):
    (found,) = [one for one in bench.read("fedadmm/figure4").block if one.name == f"Example 5.1{reading}"]
    study = bench.merge(found.study, {"rounds": 1, "data": {"clients": clients}, "algorithm": "fedavg"})
    result = mpifed.run(study)
    assert theory.tolerance(result) == pytest.approx(expected / float(result.clients["samples"].sum()), rel=1e-12)
    assert theory.tolerance(result) >= study["stop"]["gradient"]  # so that the run gets there
