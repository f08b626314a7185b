"""ProxSkip: what it is with one step a round, its rate, its coins, and what a round costs."""

import numpy as np
import pytest

import mpifed
from mpifed import UserError
from mpifed.algorithms.proxskip import ProxSkip
from mpifed.extend import Local, stream
from mpifed.federation.participation.selection import All
from tests.helpers.algorithm_runs import M, Run, build, quadratics, systems

CERTIFIED = {"data": {"name": "quadratic", "clients": 6, "features": 5}, "selection": "all", "rounds": 1}
CLASSES = {"name": "synthetic", "clients": 3, "features": 4, "classes": 2, "least": 5, "most": 9}
CERTIFIED["algorithm"] = {"name": "proxskip", "certify": True}


def test_it_is_as_fast_as_the_theorem_says_and_needs_fewer_rounds_than_gradient_descent():
    """E Ψ falls by 1 − min(γμ, p²) a step, here 1 − 1/κ: over 25 seeds the mean does not lie above the bound."""
    Q, b = systems(6, 5, spread=1.5)
    Q = Q / np.linalg.norm(Q, 2, axis=(1, 2)).max()  # L = 1
    mu = np.linalg.eigvalsh(Q)[:, 0].min()
    data, x = quadratics(Q, b), np.linalg.solve(Q.sum(axis=0), b.sum(axis=0))
    optimal = np.einsum("ijk,k->ij", Q, x) - b  # h_i at the minimiser
    rounds, ratios = 25, []
    for seed in range(25):
        run = Run(ProxSkip(), "quadratic", seed=seed, selection=All(), data=data)
        assert run.server.p == pytest.approx(np.sqrt(mu), rel=1e-9)
        run.rounds(rounds)
        steps = sum(int(stream(seed, "server", t).geometric(run.server.p)) for t in range(1, rounds + 1))
        factor = (run.server.gamma / run.server.p) ** 2
        psi = len(Q) * np.sum((run.server.x - x) ** 2) + factor * np.sum((run.states().h - optimal) ** 2)
        first = len(Q) * np.sum(x**2) + factor * np.sum(optimal**2)
        ratios.append(psi / first / (1 - mu) ** steps)
    assert np.mean(ratios) <= 1
    descent = Run(build("gd"), "quadratic", selection=All(), data=data)
    descent.rounds(rounds)
    assert np.sum((run.server.x - x) ** 2) < 0.1 * np.sum((descent.server.x - x) ** 2)


def test_the_steps_of_a_round_are_geometric_and_drawn_once_for_all_clients(monkeypatch):
    p, gradients_of = 0.25, []
    grad = Local.grad

    def counting(f, X):
        gradients_of.append(len(f))
        return grad(f, X)

    run = Run(ProxSkip(p=p), selection=All())
    monkeypatch.setattr(Local, "grad", counting)
    for round in range(1, 41):
        gradients_of.clear()
        run.rounds(1)
        steps, rest = divmod(sum(gradients_of), M)
        assert rest == 0
        assert steps == stream(0, "server", round).geometric(p)
    assert run.fed.ledger.uploads == run.fed.ledger.downloads == 40 * M  # the mean comes with the next round


def test_a_round_lasts_as_long_as_its_steps():
    system = {"speed": 100, "latency": 0.5, "bandwidth_up": 1000, "bandwidth_down": 2000}
    table = {"data": {"clients": 3, "features": 5}, "selection": "all", "rounds": 6, "system": system}
    table["algorithm"] = {"name": "proxskip", "p": 0.3}
    result = mpifed.run(table)
    d = result.clients["samples"].max()
    steps = [int(stream(0, "server", round).geometric(0.3)) for round in range(1, 7)]
    assert len(set(steps)) > 1
    expected = [1 + 40 / 1000 + 40 / 2000 + count * d / 100 for count in steps]
    np.testing.assert_allclose(np.diff(result.rounds["simulated_seconds"]), expected, rtol=1e-12)
    given = mpifed.run(table | {"system": system | {"passes": 2}})
    np.testing.assert_allclose(np.diff(given.rounds["simulated_seconds"]), 1.06 + 2 * d / 100, rtol=1e-12)


def test_without_strong_convexity_it_needs_p():
    with pytest.raises(
        UserError, match=r"^proxskip cannot run on least-squares: .*; with algorithm\.p it can, and so can"
    ):
        mpifed.run({"algorithm": "proxskip", "data.clients": 4, "rounds": 1})
    flat = {"name": "softmax", "lam": 0.0}
    with pytest.raises(UserError, match=r"^proxskip cannot run on softmax as it stands: it needs algorithm\.p where "):
        mpifed.run({"algorithm": "proxskip", "problem": flat, "data": CLASSES, "rounds": 1})
    with pytest.raises(UserError, match=r"it needs .*; with algorithm\.p and algorithm\.gamma it can, and so can "):
        mpifed.run({"algorithm": "proxskip", "problem": "mlp", "data": CLASSES, "rounds": 1})


def test_the_certificate_states_its_rate_a_step():
    certificate = mpifed.run(CERTIFIED).certificate
    assert certificate.holds is True
    (bound,) = certificate.bounds
    assert bound.value == pytest.approx(1 - certificate.constants.mu_min / certificate.constants.L_max)
    assert mpifed.run(CERTIFIED | {"selection": {"count": 3}}).certificate.conditions == []
