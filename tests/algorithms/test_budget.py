"""The privacy budget of a run: basic and accounted."""

import sys
from math import log, log1p

import numpy as np
import pytest

import mpifed
from mpifed.algorithms.fedepm import FedEPM
from mpifed.algorithms.parts.budget import GRID
from mpifed.algorithms.parts.noise import Budget
from mpifed.core.errors import UserError


def test_the_sum_is_the_basic_budget_and_nothing_released_costs_nothing():
    assert np.isclose(Budget(0.1, 7).basic_epsilon(), 0.7)
    assert Budget(0.1, 0).basic_epsilon() == Budget(0.1, 0).renyi_epsilon(1e-5) == 0


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-5, 1e-2])
def test_the_accounted_budget_is_never_more_than_the_sum(epsilon, delta):
    pytest.importorskip("dp_accounting")
    found = [Budget(epsilon, count).renyi_epsilon(delta) for count in (1, 2, 10, 100, 1000)]
    assert all(one <= count * epsilon * (1 + 1e-12) for one, count in zip(found, (1, 2, 10, 100, 1000), strict=True))
    assert found == sorted(found)
    assert found[-1] < (0.6 if epsilon <= 1 else 1) * 1000 * epsilon  # many releases: it falls below
    assert Budget(epsilon, 100).renyi_epsilon(delta / 10) >= found[3]


@pytest.mark.parametrize(("epsilon", "count"), [(0.1, 200), (0.5, 50), (1.0, 30)])
def test_the_accounted_budget_is_renyi_accounting(epsilon, count):
    """Mironov 2017, Proposition 6, and the conversion to (ε, δ) of Canonne, Kamath and Steinke 2020."""
    pytest.importorskip("dp_accounting")
    delta, best = 1e-5, np.inf
    for a in np.concatenate([np.linspace(1.1, 10.9, 99), np.arange(11, 512)]):
        inside = log(a / (2 * a - 1) + (a - 1) / (2 * a - 1) * np.exp((1 - 2 * a) * epsilon)) + (a - 1) * epsilon
        best = min(best, count * inside / (a - 1) + log1p(-1 / a) - log(delta * a) / (a - 1))
    assert np.isclose(Budget(epsilon, count).renyi_epsilon(delta), best, rtol=0.02)
    assert Budget(epsilon, count).renyi_epsilon(delta) < 0.95 * Budget(epsilon, count).basic_epsilon()


@pytest.mark.parametrize(("epsilon", "count"), [(0.5, 20), (1.0, 10)])
def test_the_accounted_budget_is_an_upper_bound(epsilon, count):
    """Of the exact one, by the distribution of the privacy loss."""
    pytest.importorskip("dp_accounting")
    from dp_accounting.pld import privacy_loss_distribution as pld

    loss = pld.from_laplace_mechanism(1 / epsilon, value_discretization_interval=1e-2, pessimistic_estimate=False)
    assert Budget(epsilon, count).renyi_epsilon(1e-5) >= loss.self_compose(count).get_epsilon_for_delta(1e-5)


def renyi(order, epsilon, scale):
    """The Rényi divergence of discrete Laplace noise of ``scale`` steps, moved by ε·scale steps, by its definition."""
    r, moved = np.exp(-1 / scale), round(epsilon * scale)
    k = np.arange(-40 * scale, 40 * scale + moved)
    total = np.sum(np.exp(-(order * abs(k) + (1 - order) * abs(k - moved)) / scale))
    return float(np.log((1 - r) / (1 + r) * total)) / (order - 1)


def renyi_laplace(order, epsilon):
    """The same of Laplace noise: Mironov 2017, Proposition 6."""
    low, high = order / (2 * order - 1), (order - 1) / (2 * order - 1)
    return (log(low) + (order - 1) * epsilon + log1p(high / low * np.exp((1 - 2 * order) * epsilon))) / (order - 1)


@pytest.mark.parametrize("epsilon", [0.125, 1.0, 4.0])
@pytest.mark.parametrize("order", [1.1, 2.0, 8.0, 64.0])
def test_a_millionth_more_covers_noise_on_the_grid(order, epsilon):
    """Grids have scales of 1024 steps, and of 1024/ε where that is more."""
    scale = int(max(1024, 1024 / epsilon))
    discrete = renyi(order, epsilon, scale)
    assert discrete <= renyi_laplace(order, epsilon * GRID) + 1e-13
    assert np.isclose(discrete, renyi_laplace(order, epsilon), rtol=1e-5)


def test_without_the_library_the_budget_says_what_to_install_and_a_run_does_so_before_round_one(monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "dp_accounting"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    begun = []
    monkeypatch.setattr(FedEPM, "round", lambda self, fed, server: begun.append(fed.round))
    assert Budget(0.1, 0).renyi_epsilon(1e-5) == 0
    with pytest.raises(UserError, match=r"dp-accounting: pip install 'mpifed\[privacy\]'$"):
        Budget(0.1, 3).renyi_epsilon(1e-5)
    with pytest.raises(UserError, match=r"dp-accounting: pip install 'mpifed\[privacy\]'$"):
        mpifed.run(rounds=2, data={"clients": 4, "features": 3}, algorithm={"name": "fedepm", "noise": "clipped"})
    assert not begun
