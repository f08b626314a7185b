"""Selections with a probability of its own for each client: laws and weights."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpifed.features.selection_laws.importance import (
    Importance,
    bernoulli_probabilities,
    inclusion_probabilities,
    make_selector,
)
from mpifed.federation.participation.selection import All
from tests.federation.participation.test_selection import drawn
from tests.helpers.algorithm_cases import SETTINGS, start
from tests.helpers.algorithm_runs import M, N, Run, build

odds = st.lists(st.floats(-6, 6), min_size=2, max_size=8).map(lambda logs: np.exp(np.array(logs)))


def law(theta, size, scale=None):
    """Every set of ``size`` and its probability, ∝ Σ scale · Π θ."""
    sets = [list(some) for some in combinations(range(len(theta)), size)]
    weight = np.array([np.prod(theta[some]) * (1 if scale is None else scale[some].sum()) for some in sets])
    return sets, weight / weight.sum()


@given(theta=odds, data=st.data())
def test_probabilities_are_those_of_all_sets_added_up(theta, data):
    size = data.draw(st.integers(1, len(theta) - 1))
    p, q = bernoulli_probabilities(theta, size)
    assert np.isclose(p.sum(), size, rtol=1e-9)
    expected = np.zeros(len(theta))
    for some, probability in zip(*law(theta, size), strict=True):
        expected[some] += probability
    assert np.allclose(inclusion_probabilities(p, q, size), expected, rtol=1e-9, atol=0)


def test_probabilities_of_many_clients_keep_their_digits_equal_odds_weigh_nothing_and_the_power_bends_them():
    theta = np.exp(np.random.default_rng(0).normal(size=5000) * 2)
    for size in (1, 50, 2500, 4999):
        assert np.isclose(inclusion_probabilities(*bernoulli_probabilities(theta, size), size).sum(), size, rtol=1e-12)
    assert np.allclose(Importance(count=3, odds=(2.0,) * 8).selector(0, 8, 9).weights, 1, rtol=1e-14)
    given, bent = (Importance(count=2, odds=(1.0, 4.0, 9.0), power=p).selector(0, 3, 9) for p in (1.0, 0.5))
    roots = Importance(count=2, odds=(1.0, 2.0, 3.0)).selector(0, 3, 9)
    assert np.allclose(bent.weights, roots.weights)
    assert not np.allclose(given.weights, roots.weights)


@pytest.mark.parametrize("scale", [pytest.param(np.ones(6), marks=pytest.mark.slow), np.array([5.0, 1, 1, 9, 2, 0.1])])
@pytest.mark.parametrize("size", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_sets_are_drawn_with_their_probabilities(size, scale):
    """A chi-square test of all sets, 20,000 draws: twice the number of sets is passed once in a million."""
    theta, rounds = np.array([9.0, 1.0, 3.0, 0.5, 2.0, 1.0]), 20_000
    select = make_selector(7, size, theta, scale).select
    sets, probability = law(theta, size, scale)
    number = {tuple(some): k for k, some in enumerate(sets)}
    times = np.bincount([number[tuple(select(round, 0).tolist())] for round in range(rounds)], minlength=len(sets))
    square = ((times - rounds * probability) ** 2 / (rounds * probability)).sum()
    assert square < len(sets) + 5 * np.sqrt(2 * len(sets))


@given(m=st.integers(2, 40), data=st.data(), seed=st.integers(0, 99))
def test_a_set_is_never_empty_and_never_names_a_client_twice(m, data, seed):
    size = data.draw(st.integers(1, m))
    rule = Importance(count=size, odds=tuple(data.draw(st.lists(st.floats(1e-6, 1e6), min_size=m, max_size=m))))
    selector = rule.selector(seed, m, 9)
    for round, chosen in enumerate(drawn(rule, seed, m, 4), 1):
        assert len(chosen) == size
        assert (np.diff(chosen) > 0).all()
        assert size == m or np.array_equal(chosen, selector.select(round, 0))


CORRECTED = {name: SETTINGS[name] for name in ("local-gd", "fedavg", "fedprox")} | {
    "fedopt": SETTINGS["fedopt"] | {"server": {"name": "momentum", "beta": 0.0}},
    "marina": {"gamma": 0.02, "p": 1e-9, "compressor": "identity"},
}


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("gd", {}),
        *[pytest.param(*one, marks=() if one[0] == "local-gd" else pytest.mark.slow) for one in CORRECTED.items()],
    ],
)
def test_a_corrected_step_is_that_of_all_clients_on_average(name, options):
    """The mean of x⁺ over all sets with their probabilities is x⁺ of all clients: to rounding. Of MARINA, that of g."""
    theta = np.linspace(1, 9, M) ** 2
    field = "g" if name == "marina" else "x"

    def stepped(chosen):
        run = Run(build(name, options), selection=Importance(count=2, odds=tuple(theta)) if chosen else All())
        if chosen:
            selector = run.fed.participants.selector
            run.fed.participants.selector = selector._replace(select=lambda round, again: np.array(chosen))
        run.server = run.server._replace(x=np.linspace(-1, 1, N))
        run.rounds(1)
        return getattr(run.server, field)

    mean = sum(weight * stepped(some) for some, weight in zip(*law(theta, 2), strict=True))
    assert np.allclose(mean, stepped(None), rtol=1e-10, atol=1e-13)


def test_where_all_uploads_are_alike_the_weights_change_nothing():
    """As near an optimum, where clients that hardly move must not be spread by their weights."""
    run = Run(build("local-gd", {"gamma": 1e-300}), selection=Importance(count=2, odds=tuple(np.linspace(1, 9, M))))
    x = np.linspace(-1, 1, N)
    run.server = run.server._replace(x=x)
    assert np.allclose(run.rounds(3)[-1], x, rtol=1e-14, atol=1e-15)


def test_the_odds_are_the_lipschitz_constants_and_cost_nothing():
    run = start(build("gd"), selection=Importance(count=4))
    run.rounds(1)
    r = run.fed.inspect(run.algorithm.certify_smoothness)
    expected = Importance(count=4, odds=tuple(r.tolist())).selector(0, M, 9)
    assert np.allclose(run.fed.participants.selector.weights, expected.weights, rtol=1e-12)
    assert run.fed.ledger.bytes_up == 8 * 4 * N
