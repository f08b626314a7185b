"""Measures, variants and the plan of tuning of the comparison of all methods."""

from copy import copy

import numpy as np
import pytest

import mpifed
from benchmarks.beyond import measures
from benchmarks.beyond.tuning import plan
from benchmarks.beyond.variants import Balanced, SlowTail
from benchmarks.expressions import paper_measures, value
from benchmarks.running import minimum
from mpifed import UserError
from mpifed.algorithms.fedgia import FedGiA
from mpifed.core.toml import flatten
from mpifed.data.cache import Cache
from mpifed.experiment import config, optimum
from mpifed.experiment.config import experiment
from mpifed.federation.participation.selection import UniformSelection
from mpifed.report.least_time import seconds_to
from mpifed.theory.least_time import lower_bound
from tests.helpers.algorithm_cases import SERVED
from tests.helpers.algorithm_runs import M, N, Run, gradients, minimiser

STUDY = {
    "rounds": 5,
    "data": {"name": "gaussian", "clients": 8, "samples": 10, "features": 4},
    "problem": {"name": "logistic", "mu": 0.1, "regulariser": "whole"},
    "selection": {"name": "uniform", "share": 0.5},
}
DRAWN = {
    "speed": {"name": "lognormal", "median": 100.0, "sigma": 1.0},
    "bandwidth_up": {"name": "lognormal", "median": 64.0, "sigma": 0.5},
    "bandwidth_down": 32.0,
    "latency": 0.25,
}
PASSES = {"accfeddcd": 3.0}  # of a method that cannot tell its own
QUADRATIC = {
    "rounds": 30,
    "data": {"name": "benchmarks.beyond.variants:HardQuadratic", "clients": 6, "features": 4, "mu": 1.0, "L": 2.0},
    "problem": "quadratic",
    "algorithm": {"name": "feddcd", "dual": True},
}
GRAPH = {"data": {"name": "linreg-noniid", "clients": 6, "features": 5}, "rounds": 50, "stop": {"gradient": 0.0}}
HALF = UniformSelection(share=0.5)
SLOW = pytest.mark.slow


def run(study=STUDY, **extra):
    return mpifed.run(study | extra, progress=False)


@pytest.mark.parametrize("name", ["fedavg", "accfeddcd", {"name": "proxskip", "p": 0.3}], ids=str)
def test_seconds_without_stragglers_are_what_a_run_on_equal_clients_records(name):
    drawn = DRAWN | ({"passes": PASSES[name]} if str(name) in PASSES else {})
    even = drawn | {"speed": 100.0, "bandwidth_up": 64.0}
    own, other = (run(algorithm=name, system=system) for system in (drawn, even))
    assert np.allclose(measures.seconds_without_stragglers(own), other.rounds["simulated_seconds"], rtol=1e-12)
    assert not np.allclose(own.rounds["simulated_seconds"], other.rounds["simulated_seconds"])
    if name == "fedavg":  # by hand: 32 bytes down at 32/s, 5·10 gradients at 100/s, 32 bytes up at 64/s, latencies
        spent = np.diff(measures.seconds_without_stragglers(own))
        assert np.allclose(spent, 0.25 + 1.0 + 0.5 + 0.25 + 0.5)
        assert value(own, "seconds_without_stragglers", paper_measures("beyond")) == pytest.approx(5 * 2.5)


@pytest.mark.parametrize("name", ["uniform", "importance", "greedy", "cyclic"])
def test_factors_of_the_dual_gap(name):
    """What is measured and proven of a run with one client of L = 200; by turns nothing is proven."""
    overlap = {"overlap": 1} if name == "cyclic" else {}
    found = run(QUADRATIC, selection={"name": name, "count": 3, **overlap})
    gaps = measures.dual_gap(found)
    count = int(np.isfinite(gaps).sum()) - 1
    assert measures.dual_factor(found) == pytest.approx((gaps[count] / gaps[0]) ** (1 / count))
    assert measures.over_theorem(found) == pytest.approx((1 - measures.dual_factor(found)) * 200 * 5 / 2)
    proven = measures.proven_factor(found)
    expected = {"uniform": 1 - 2 / 5 / 200, "greedy": 1 - 2 / (3 * 4) / 200, "cyclic": np.nan}
    expected["importance"] = measures.by_importance(np.ones(6), np.array([200.0, 2, 2, 2, 2, 2]), 3)
    assert proven == pytest.approx(expected[name], rel=1e-12, nan_ok=True)
    over = (1 - proven) / (1 - measures.dual_factor(found))
    assert measures.over_proven(found) == pytest.approx(over, nan_ok=True)


def test_what_is_left_of_the_dual_gap_and_how_far_it_rises():
    """With late uploads it falls in every round; the same record read backwards rises by what it fell."""
    late = {"asynchronous": {"arrivals": 3}, "system": {"speed": 1.0, "passes": 1, "jitter": 0.5}}
    found = run(QUADRATIC, **late)
    left = measures.dual_left(found)
    assert left[0] == 1.0
    assert 0 < left[-1] < 0.9
    assert measures.dual_rise(found) == 0.0
    found = copy(found)  # another result, whose constants are not remembered
    found.rounds = found.rounds | {"dual_objective": found.rounds["dual_objective"][::-1]}
    assert measures.dual_rise(found) == pytest.approx(np.max(left[:-1] - left[1:]) / left[-1])


@pytest.mark.parametrize("name", ["uniform", *(pytest.param(name, marks=SLOW) for name in ("importance", "greedy"))])
def test_factors_on_other_problems_use_bounds_of_curvature_and_the_optimum(name):
    study = STUDY | {"algorithm": {"name": "feddcd", "dual": True}, "selection": {"name": name, "count": 4}}
    least = -run(study, rounds=60).rounds["dual_objective"][-1] / 8
    found, seldom = (run(study, stop={"optimum": float(least)}, evaluate={"every": every}) for every in (1, 5))
    known = measures.dual(found)
    X, _ = experiment(found.config).data.load(0, "float64").rows(0, 8)
    bounds = [np.linalg.norm(A, 2) ** 2 / 40 + 0.1 for A in X.reshape(8, 10, 4)]
    assert np.allclose(known.betas, bounds)
    assert (known.alpha, known.beta, known.tau) == pytest.approx((0.1, max(bounds), 4))
    gaps = found.rounds["dual_objective"] + 8 * least
    assert np.allclose(measures.dual_gap(found), gaps)
    assert measures.dual_factor(found) == pytest.approx((gaps[5] / gaps[0]) ** 0.2)
    assert np.isfinite(measures.dual_gap(seldom)).sum() == 2
    assert measures.dual_factor(seldom) == pytest.approx(measures.dual_factor(found))
    expected = {"uniform": 1 - 3 / 7 * 0.1 / max(bounds), "greedy": 1 - 3 / (4 * 5) * 0.1 / max(bounds)}
    expected["importance"] = measures.by_importance(np.full(8, 0.1), np.array(bounds), 4)
    assert measures.proven_factor(found) == pytest.approx(expected[name], rel=1e-9)
    assert measures.over_proven(found) < 1


def test_the_gap_over_its_goal_is_one_where_tuning_wanted_the_run_to_come_and_factors_need_a_dual_objective():
    found = run(algorithm="feddcd", rounds=2)
    assert np.isnan([one(found) for one in (measures.dual_factor, measures.proven_factor, measures.over_theorem)]).all()
    found = run(algorithm="fedavg", stop={"objective_gap": 1e-4, "optimum": 0.0})
    assert np.allclose(measures.gap_over_goal(found), found.rounds["objective_gap"] / 1e-3)
    rounds = [f"rounds at {bound}" for bound in ("gap_over_goal <= 1", "objective_gap <= 1e-3")]
    assert len({value(found, text, paper_measures("beyond")) for text in rounds}) == 1


@pytest.mark.parametrize(("t", "unit"), [(1e-3, "t"), (0.3, "beta"), (3.0, "t"), (1e3, "beta")])
def test_balanced_residuals_move_the_penalty(t, unit):
    """Round one from x = 0, π = 0: x_i = −ḡ_i/(r_i/m + σ), π_i = σ x_i of the selected, 0 and −ḡ_i of others."""
    run = Run(Balanced(k0=1, t=t, unit=unit, mu=2.0), selection=HALF)
    sigma, g = run.server.sigma, gradients(run, np.zeros(N)) / M
    run.rounds(1)
    chosen = run.fed.mask(run.fed.selected)[:, None]
    r = np.array([[np.linalg.norm(A, 2) ** 2 / len(A)] for A, _ in run.samples()])
    own = np.where(chosen, -g / (r / M + sigma), 0)
    x = np.where(chosen, 2 * own, -g / sigma).mean(axis=0)
    d, p = np.linalg.norm(own), (t if unit == "t" else M * sigma) * M**0.5 * np.linalg.norm(x)
    factor = 2.0 if 2 * p < d else 0.5 ** (2 * d < p)
    assert run.server.sigma == factor * sigma
    assert np.allclose(run.server.x, x)


def test_balanced_residuals_do_not_see_that_the_penalty_is_far_too_small():
    """On least squares both residuals grow by the same factor a round; the curvature along the path tells."""
    kinds = (Balanced(k0=1, t=0.002), FedGiA(k0=1, t=0.002, adaptive=True))
    balanced, adaptive = (Run(kind, selection=HALF) for kind in kinds)
    away = [np.linalg.norm(run.rounds(40)[-1] - minimiser(run)) for run in (balanced, adaptive)]
    assert away[0] > 1e20
    assert away[1] < 0.1
    assert balanced.server.sigma < 0.02 * balanced.server.r / M


def test_a_graph_does_not_change_the_optimum_and_an_edge_carries_a_vector_each_way_in_a_round_unless_it_is_lost():
    table = {"data": {"name": "linreg-noniid", "clients": 6, "features": 4}}
    graph = experiment({**table, "graph": "ring", "algorithm": "dgd"})
    assert minimum(graph, Cache()) == pytest.approx(minimum(experiment(table), Cache()), rel=1e-12)
    ring, lossy = (run(GRAPH, algorithm="dgd", graph={"name": "ring", "loss": p}) for p in (0.0, 0.5))
    assert measures.kilobytes_an_edge(ring) == pytest.approx(np.arange(51) * 2 * 5 * 8 / 1e3)
    assert 0.3 < measures.kilobytes_an_edge(lossy)[-1] / measures.kilobytes_an_edge(ring)[-1] < 0.7
    assert measures.spectral_gap(ring) == measures.spectral_gap(lossy) == pytest.approx(1 / 3)
    served = run(GRAPH, rounds=2)
    assert np.isnan(measures.kilobytes_an_edge(served)).all()
    assert np.isnan(measures.spectral_gap(served))


def test_sigma_of_a_slow_tail_is_the_standard_deviation_of_the_logarithm():
    """Equal at sigma = 0, else times of Pareto's law around the same median."""
    equal, v = (SlowTail(median=200.0, sigma=s).draw(np.random.default_rng(1), 100_000) for s in (0.0, 1.0))
    assert (equal == 200.0).all()
    assert np.median(v) == pytest.approx(200.0, rel=0.05)
    assert np.log(v).std() == pytest.approx(1.0, rel=0.02)
    assert [(v * k < v.max()).mean() for k in (4.0, 16.0)] == pytest.approx([1 / 4, 1 / 16], rel=0.1)


def test_the_least_time_of_a_study_is_what_certify_says_of_it():
    table = {"data": "tridiagonal", "data.clients": 5, "data.features": 20, "problem.noise": 0.01, "rounds": 150}
    table |= {"algorithm": "ringmaster", "algorithm.R": 3, "algorithm.gamma": 0.2, "asynchronous.arrivals": 1}
    table |= {"system.speed": {"name": "benchmarks.beyond.variants:Rooted", "value": 20}}
    for spread in (0.0, 0.1):
        run = mpifed.run(table | {"data.spread": spread})
        built = experiment(run.config)
        setting = optimum.least_time_setting(built, optimum.compute_certificate(built, run.x, run.cr).constants, run.x)
        assert np.allclose(setting.tau, np.sqrt(np.arange(1, 6)))
        own = value(run, "over_least", paper_measures("beyond"))
        assert own == pytest.approx(seconds_to(run, 1e-3) / lower_bound(setting, 1e-3), rel=1e-6)


UNITS = plan.Units(L=4.0, kappa=0.01, n=20, D=50, mean=10.0, X=0.5, optimum=0.1)
TUNING = plan.read()
LEFT_OUT = {"flame-dp", "ditto", "apfl", "fedrep"}  # noise; the server's model is that of FedAvg
# not tuned yet
LEFT_OUT |= {"aggregated-lbfgs", "fedvarp", "mifa"}  # in the arena
LEFT_OUT |= {"ef21-hb", "ef21-bc", "ef21-sgd", "ef21-page", "fednew", "fedns", "nesterov", "q-fedavg"}
LEFT_OUT |= {"ringmaster", "rennala", "malenia", "ringleader"}  # asynchronous: in beyond/leasttime
LEFT_OUT |= {"ad-admm", "fedbuff", "fedgia-async"}  # asynchronous: in beyond/asynchronous


def test_values_are_multiples_of_units():
    texts = {"1..8 / L": "0.25..2", "0.5 * L": 2.0, "10 / LD": 0.05, "2 * kappa": 0.02, "0.1 * X": 0.05}
    texts |= {"0.01 * nXX": 0.05, "5e-4 * LX": 0.001, "constant": "constant", 1.5: 1.5}
    assert {text: UNITS.scaled(text) for text in texts} == texts


def test_no_method_is_forgotten_and_every_one_may_try_the_same_number_of_settings_on_the_same_devices():
    assert set(SERVED) - LEFT_OUT <= {table["name"] for table in TUNING.method}
    labels = [table["label"] for table in TUNING.method]
    assert len(set(labels)) == len(labels)
    for number, table in enumerate(TUNING.method):
        tries = plan.settings(table, TUNING.settings, number, UNITS).tries
        ranges = any(isinstance(value, str) and ".." in value for value in flatten(table).values())
        assert len(tries) == TUNING.settings if ranges else 1 < len(tries) < TUNING.settings, table["label"]
        for one in tries:
            config.experiment({"algorithm": one.algorithm})  # names and values are right
    with pytest.raises(UserError, match="no method on a9a is called 'nowhere': there are GD; "):
        plan.plans(TUNING, "a9a", ["nowhere"])
    # equal clients of 10 samples: 0.2 s for a pass, 0.2 s for a model one way, 0.1 s for a message one way
    system = plan.devices(UNITS)
    assert 10 / system["speed"] == pytest.approx(0.2)
    assert 8 * 20 / system["bandwidth_up"] == 8 * 20 / system["bandwidth_down"] == pytest.approx(0.2)
    assert system["latency"] == pytest.approx(0.1)
