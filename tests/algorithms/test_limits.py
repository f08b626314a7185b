"""Where the methods of three papers end: whole sequences, slow ends, stationary points that are no minima, rounds."""

from itertools import pairwise

import numpy as np
import pytest

from mpifed.data.sources.quadratic import RandomQuadratic
from mpifed.federation.participation.selection import All, UniformSelection
from mpifed.problems.problem import Problem
from tests.helpers.algorithm_runs import SOURCES, Run, build, gradients, lowest, minimiser, smoothness

# σ_i > 5α_i r_i/2 of FedADMM's theorems and σ >= 6r/m of FedGiA's
WITHIN = {"fedadmm": {"r0": 3.0, "k0": 3, "inner_max": 20}, "fedgia": {"t": 6.0, "k0": 3, "lagrangian": True}}
both = pytest.mark.parametrize("name", WITHIN)


class ByCoordinate(Problem):
    """f_i(x) = Σ_j φ(x_j) + t_i Σ_j x_j: a tilt t_i of each client, ``tilt`` times the mean of its targets."""

    tilt: float = 0.0

    def initial(self, data, seed):
        return np.where(np.arange(data.n) % 2, 0.6, -0.6)

    def tilts(self, block):
        return self.tilt * np.vecdot(block.w, block.b)

    def value_grad(self, block, X):
        X, t = X * np.ones((len(block), 1)), self.tilts(block)
        return self.phi(X).sum(axis=1) + t * X.sum(axis=1), self.slope(X) + t[:, None]

    def lipschitz(self, block):
        return np.full(len(block), self.bound)


class Well(ByCoordinate):
    """φ(x) = (x² − 1)²/4: two minima and a maximum between them, each alone; |φ''| <= 11 where |x| <= 2."""

    bound = 11.0

    def phi(self, X):
        return (X * X - 1) ** 2 / 4

    def slope(self, X):
        return X**3 - X


class Flat(ByCoordinate):
    """φ(x) = x⁴/4, whose Kurdyka–Łojasiewicz exponent at its minimum 0 is θ = 3/4; φ'' <= 3 where |x| <= 1."""

    bound = 3.0

    def phi(self, X):
        return X**4 / 4

    def slope(self, X):
        return X**3


def farthest(run, name, r, x, slopes):
    """The largest entry of w − w*, of all w_i − w* and of all π_i − π_i*, where π_i* = −∇f_i(w*)/m."""
    states = run.states()
    sigma = WITHIN["fedadmm"]["r0"] * r / run.m
    local = states.w if name == "fedgia" else (states.z - states.pi) / sigma[:, None]
    return max(np.abs(part).max() for part in (run.server.x - x, local - x, states.pi + slopes / run.m))


def falls(run, name, r, x, slopes):
    """Every hundred rounds bring all three sequences at least four times nearer to the limit; 400 to 2e-4."""
    ends = []
    for _ in range(4):
        run.rounds(100)
        ends.append(farthest(run, name, r, x, slopes))
    assert all(after < before / 4 for before, after in pairwise(ends)), ends
    assert ends[-1] < 2e-4


@both
def test_where_f_is_strongly_convex_the_whole_sequence_ends_at_the_solution(name):
    """c) of FedADMM's Corollary 4.1 and iii) of FedGiA's Corollary IV.1, with 40 % of the clients in a round."""
    run = Run(build(name, WITHIN[name]))
    x = minimiser(run)
    falls(run, name, smoothness(run), x, gradients(run, x))


@both
def test_the_whole_sequence_ends_at_a_stationary_point_that_is_alone(name):
    """b) of FedADMM's Theorem 4.2 and ii) of FedGiA's Theorem IV.2: double wells, each client's tilted its own way."""
    run = Run(build(name, WITHIN[name]), Well(tilt=0.3), data=SOURCES["least-squares"].load(0, "float64"))
    tilts = 0.3 * np.array([b.mean() for _, b in run.samples()])
    low, _, high = np.sort(np.roots([1.0, 0.0, -1.0, tilts.mean()]).real)
    x = np.where(np.arange(run.n) % 2, high, low)  # on the side where each coordinate starts
    falls(run, name, np.full(run.m, 11.0), x, x**3 - x + tilts[:, None])


@pytest.mark.parametrize("k0", [1, 5])
def test_theorem_iv_4_iii_where_the_exponent_is_above_a_half_the_gap_falls_by_a_power(k0):
    """θ = 3/4: f − f* <= (c k0/k)^(1/(2θ − 1)) = (c k0/k)², and no faster: twice the rounds, a quarter of the gap."""
    run = Run(
        build("fedgia", {"t": 6.0, "k0": k0}), Flat(), data=SOURCES["least-squares"].load(0, "float64"), selection=All()
    )
    run.rounds(1000)
    early = run.measure()[0]
    run.rounds(1000)
    assert 0.23 < run.measure()[0] / early < 0.27


def test_lemma_iv_1_ii_the_gradient_of_the_lagrangian_is_at_most_the_step():
    """(25): ‖∇L(Z^{s+1})‖ <= (2σ + 1) √(m ϖ_{s+1}), ϖ = Σ (‖Δx‖² + ‖Δx_i‖²), for k0 = 1 and some of the clients."""
    run = Run(build("fedgia", {"t": 6.0, "k0": 1, "lagrangian": True, "H": "diagonal"}))
    before, shares = run.server.x, []
    run.rounds(1)
    for _ in range(60):
        x, old = run.server.x, run.states().w
        run.rounds(1)
        states, sigma = run.states(), run.server.sigma
        apart = states.w - x
        local = gradients(run, states.w) / run.m + states.pi + sigma * apart
        whole = (states.pi + sigma * apart).sum(axis=0)
        size = np.sqrt(np.sum(local**2) + np.sum(apart**2) + whole @ whole)
        varpi = run.m * np.sum((x - before) ** 2) + np.sum((states.w - old) ** 2)
        shares.append(size / ((2 * sigma + 1) * np.sqrt(run.m * varpi)))
        before = x
    assert max(shares) <= 1


def rounds_until(name, ratio, tau, gap):
    """Rounds until ‖w − w*‖ falls to ``gap`` of its first, on 9 quadratics with β/α = ``ratio``: mean of two seeds."""
    data = RandomQuadratic(clients=9, features=10, mu=1.0 / ratio, L=1.0).load(0, "float64")
    found = []
    for seed in range(2):
        run = Run(build(name), "quadratic", data=data, selection=UniformSelection(count=tau), seed=seed)
        x = lowest(run)
        first, rounds = np.linalg.norm(run.server.x - x), 1
        while np.linalg.norm(run.rounds(1)[-1] - x) > gap * first:
            rounds += 1
        found.append(rounds)
    return np.mean(found)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "power"), [("feddcd", 1.0), ("accfeddcd", 0.5)])
def test_table_1_of_feddcd_rounds_over_clients_condition_and_accuracy(name, power):
    """O((N−1)/(τ−1)·β/α·log(ζ/ε)) rounds, of the accelerated method √(β/α): as orders, on one kind of problem."""
    some = rounds_until(name, 10, 5, 1e-3)
    assert rounds_until(name, 40, 5, 1e-3) / some == pytest.approx(4**power, rel=0.2)
    assert rounds_until(name, 10, 3, 1e-3) / some == pytest.approx(2, rel=0.25)  # (τ − 1)/(N − 1) from 1/2 to 1/4
    half, whole = rounds_until(name, 10, 5, 1e-5), rounds_until(name, 10, 5, 1e-7)
    assert whole - half == pytest.approx(half - some, rel=0.25)  # each hundredth of ε costs as many rounds
