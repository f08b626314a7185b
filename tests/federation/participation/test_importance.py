"""Selections by turns, and with a probability of its own for each client: laws, weights, refusals."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpifed.algorithms.base import Algorithm
from mpifed.core.errors import UserError
from mpifed.federation.participation.cyclic import Cyclic
from mpifed.federation.participation.importance import Importance, bernoulli, drawing, inclusions
from mpifed.federation.participation.selection import Selection
from mpifed.problems.base import Problem
from tests.helpers.algorithm_cases import SETTINGS, start
from tests.helpers.algorithm_runs import M, N, Run, build, gradients, same

odds = st.lists(st.floats(-6, 6), min_size=2, max_size=8).map(lambda logs: np.exp(np.array(logs)))


def drawn(selector, m, rounds, again=0):
    sets = [selector.select(round, again) for round in range(1, rounds + 1)]
    return [np.arange(m) if chosen is None else chosen for chosen in sets]


def law(theta, size, scale=None):
    """Every set of ``size`` and its probability, ∝ Σ scale · Π θ."""
    sets = [list(some) for some in combinations(range(len(theta)), size)]
    weight = np.array([np.prod(theta[some]) * (1 if scale is None else scale[some].sum()) for some in sets])
    return sets, weight / weight.sum()


# cyclic


@given(m=st.integers(1, 60), data=st.data(), again=st.integers(0, 1))
def test_turns_come_round_evenly(m, data, again):
    size = data.draw(st.integers(1, m))
    overlap = data.draw(st.integers(0, size - 1))
    rule = Cyclic(count=size, overlap=overlap, shuffled=data.draw(st.booleans()))
    sets = drawn(rule.selector(3, m, 99), m, m, again)  # m rounds are whole turns
    assert all(len(chosen) == size and (np.diff(chosen) > 0).all() for chosen in sets)
    times = np.bincount(np.concatenate(sets), minlength=m)
    assert (times > 0).all() if overlap else (times == size).all()
    if size < m and 2 * size - overlap <= m:
        assert all(len(np.intersect1d(a, b)) == overlap for a, b in pairwise(sets))


def test_turns_follow_the_order_of_the_data():
    found = drawn(Cyclic(count=3).selector(0, 7, 9), 7, 4)
    assert [chosen.tolist() for chosen in found] == [[0, 1, 2], [3, 4, 5], [0, 1, 6], [2, 3, 4]]
    assert drawn(Cyclic(count=3).selector(0, 7, 9), 7, 1, again=1)[0].tolist() == [3, 4, 5]
    shuffled = drawn(Cyclic(count=1, shuffled=True).selector(1, 30, 99), 30, 30)
    assert np.concatenate(shuffled).tolist() not in ([*range(30)], sorted(range(30), reverse=True))


def test_an_overlap_as_large_as_the_set_is_refused():
    with pytest.raises(
        UserError, match=r"^selection\.overlap = 3 is wrong: it must be less than the 3 selected clients$"
    ):
        Cyclic(count=3, overlap=3).selector(0, 9, 1)


@pytest.mark.parametrize("name", ["feddcd", "accfeddcd", "proxskip"])
def test_turns_that_never_mix_are_refused_where_clients_exchange_among_themselves(name):
    with pytest.raises(UserError, match=r"^selection\.overlap = 0 is wrong: .* 3 of 9 by turns .* at least 1$"):
        Cyclic(count=3).verify(build(name), None, 9)
    for fine in (Cyclic(count=3, overlap=1), Cyclic(count=4), Cyclic(count=9)):
        fine.verify(build(name), None, 9)
    Cyclic(count=3).verify(build("fedavg"), None, 9)


# importance


@given(theta=odds, data=st.data())
def test_probabilities_are_those_of_all_sets_added_up(theta, data):
    size = data.draw(st.integers(1, len(theta) - 1))
    p, q = bernoulli(theta, size)
    assert np.isclose(p.sum(), size, rtol=1e-9)
    expected = np.zeros(len(theta))
    for some, probability in zip(*law(theta, size), strict=True):
        expected[some] += probability
    assert np.allclose(inclusions(p, q, size), expected, rtol=1e-9, atol=0)


def test_probabilities_of_many_clients_keep_their_digits():
    theta = np.exp(np.random.default_rng(0).normal(size=5000) * 2)
    for size in (1, 50, 2500, 4999):
        assert np.isclose(inclusions(*bernoulli(theta, size), size).sum(), size, rtol=1e-12)


@pytest.mark.parametrize("scale", [None, [5.0, 1.0, 1.0, 9.0, 2.0, 0.1]])
@pytest.mark.parametrize("size", [2, 4])
def test_sets_are_drawn_with_their_probabilities(size, scale):
    """A chi-square test of all sets, 20,000 draws: twice the number of sets is passed once in a million."""
    theta, rounds = np.array([9.0, 1.0, 3.0, 0.5, 2.0, 1.0]), 20_000
    scale = np.ones(6) if scale is None else np.array(scale)
    select = drawing(7, size, theta, scale).select
    sets, probability = law(theta, size, scale)
    number = {tuple(some): k for k, some in enumerate(sets)}
    times = np.bincount([number[tuple(select(round, 0).tolist())] for round in range(rounds)], minlength=len(sets))
    square = ((times - rounds * probability) ** 2 / (rounds * probability)).sum()
    assert square < len(sets) + 5 * np.sqrt(2 * len(sets))


@given(m=st.integers(2, 40), data=st.data(), seed=st.integers(0, 99))
def test_a_set_is_never_empty_and_never_names_a_client_twice(m, data, seed):
    size = data.draw(st.integers(1, m))
    theta = tuple(data.draw(st.lists(st.floats(1e-6, 1e6), min_size=m, max_size=m)))
    selector = Importance(count=size, odds=theta).selector(seed, m, 9)
    for round, chosen in enumerate(drawn(selector, m, 4), 1):
        assert len(chosen) == size
        assert (np.diff(chosen) > 0).all()
        again = Importance(count=size, odds=theta).selector(seed, m, 9).select(round, 0)
        assert size == m or np.array_equal(chosen, again)


def test_equal_odds_are_a_uniform_selection_and_weigh_nothing():
    selector = Importance(count=3, odds=(2.0,) * 8).selector(0, 8, 9)
    assert np.allclose(selector.weights, 1, rtol=1e-14)


def test_the_power_bends_the_odds():
    given, bent = (Importance(count=2, odds=(1.0, 4.0, 9.0), power=p).selector(0, 3, 9) for p in (1.0, 0.5))
    roots = Importance(count=2, odds=(1.0, 2.0, 3.0)).selector(0, 3, 9)
    assert np.allclose(bent.weights, roots.weights)
    assert not np.allclose(given.weights, roots.weights)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"odds": (1.0, 2.0)}, r"^selection\.odds has 2 numbers, but there are 4 clients: give one to each$"),
        ({"odds": (1.0, 2.0, 0.0, 1.0)}, r"^the odds of client 2 are 0: selection\.odds must be above 0"),
        ({"odds": (1.0, -2.0, 1.0, 1.0)}, r"^the odds of client 1 are -2: "),
        ({"odds": (1.0, 1.0, 1.0, np.inf)}, r"^the odds of client 3 are inf: "),
        ({"odds": (1.0, 9.0, 1.0, 1.0), "power": 500.0}, r"selection\.power must be nearer to 0$"),
    ],
)
def test_odds_that_cannot_be_are_refused(options, sentence):
    with pytest.raises(UserError, match=sentence):
        Importance(count=2, **options).selector(0, 4, 9)


def test_a_problem_without_lipschitz_constants_needs_odds():
    mlp = Problem.build("mlp", "problem")
    with pytest.raises(UserError, match=r"^selection\.odds is missing: mlp tells no Lipschitz constants"):
        Importance(count=2).verify(build("fedavg"), mlp, 4)
    Importance(count=2, odds=(1.0,) * 4).verify(build("fedavg"), mlp, 4)


def test_only_methods_that_need_equal_probabilities_refuse_others():
    refused = {name for name in Algorithm.choices if build(name).unequal()}
    assert refused == {"sfedavg", "sfedprox", "fednova", "fedbuff", "fedepm-graph"}
    with pytest.raises(UserError, match=r'"importance" is wrong: fednova needs equal probabilities, because its step'):
        Importance(odds=(1.0,)).verify(build("fednova"), None, 1)


CORRECTED = [
    ("gd", {}),
    ("local-gd", {"gamma": 0.02}),
    ("fedavg", SETTINGS["fedavg"]),
    ("fedprox", SETTINGS["fedprox"]),
    ("fedopt", {**SETTINGS["fedopt"], "server": {"name": "momentum", "beta": 0.0}}),
    ("marina", {"gamma": 0.02, "p": 1e-9, "compressor": "identity"}),
]


@pytest.mark.parametrize(("name", "options"), CORRECTED)
def test_a_corrected_step_is_that_of_all_clients_on_average(name, options):
    """The mean of x⁺ over all sets with their probabilities is x⁺ of all clients: to rounding."""
    theta = np.linspace(1, 9, M) ** 2
    sets, probability = law(theta, 3)
    mean = np.zeros(N)
    for some, weight in zip(sets, probability, strict=True):
        run = Run(build(name, options), selection=Importance(count=3, odds=tuple(theta)))
        selector = run.fed.participation.selector
        run.fed.participation.selector = selector._replace(select=lambda round, again, some=some: np.array(some))
        run.rounds(1)
        if name == "marina":
            mean += weight * run.server.g
            continue
        mean += weight * run.server.x
    expected = Run(build(name, options), selection=Selection.build("all", "selection"))
    expected.rounds(1)
    assert np.allclose(mean, expected.server.g if name == "marina" else expected.server.x, rtol=1e-10, atol=1e-13)


def test_gradient_descent_weighs_the_gradients_of_the_selected():
    theta = tuple(np.linspace(1, 5, M))
    run = Run(build("gd", {"gamma": 0.1}), selection=Importance(count=4, odds=theta))
    weights = run.fed.participation.selector.weights
    for _ in range(4):
        x = run.server.x
        found = run.rounds(1)[-1]
        S = run.fed.selected
        assert np.allclose(found, x - 0.1 * (weights[S, None] * gradients(run, x)[S]).sum(axis=0) / 4, rtol=1e-12)


@pytest.mark.parametrize("name", ["fedavg", "fedopt", "scaffold", "feddcd", "proxskip", "gd"])
def test_importance_has_the_same_bits_on_any_number_of_hosts(name):
    algorithm = build(name, SETTINGS.get(name, {}))
    runs = [
        start(algorithm, selection=Importance(count=4), cuts=cuts) for cuts in (None, (0, 1, 2, 11, M), range(M + 1))
    ]
    models = [run.rounds(4).tobytes() for run in runs]
    assert len(set(models)) == 1
    assert all(same(run.states(), runs[0].states()) for run in runs)
    assert all(vars(run.fed.ledger) == vars(runs[0].fed.ledger) for run in runs)
    assert runs[0].fed.times_selected.sum() == 16


def test_the_odds_are_the_lipschitz_constants_and_cost_nothing():
    run = start(build("gd"), selection=Importance(count=4))
    run.rounds(1)
    r = run.fed.inspect(run.algorithm.certify_smoothness)
    expected = Importance(count=4, odds=tuple(r.tolist())).selector(0, M, 9)
    assert np.allclose(run.fed.participation.selector.weights, expected.weights, rtol=1e-12)
    assert run.fed.ledger.bytes_up == 8 * 4 * N
