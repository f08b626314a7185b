"""Attacks and robust means in a run, against rounds written as a loop over clients."""

import itertools

import numpy as np
import pytest
from scipy.stats import norm

import mpifed
from mpifed.core.errors import UserError
from mpifed.core.streams import stream
from mpifed.features.attack.attacks import Attack, largest_z

M, N, D, ROUNDS = 10, 5, 4, 3
RNG = np.random.default_rng(7)
X, Y = RNG.standard_normal((M, D, N)), RNG.standard_normal((M, D))
GAMMA, K0 = 0.1, 3
ATTACKS = {  # options -> what is sent by attackers with changes u, where honest ones send h
    "none": ({}, lambda u, h, rng: u),
    "sign-flip": ({"scale": 2.0}, lambda u, h, rng: -2 * u),
    "random": ({"scale": 0.5}, lambda u, h, rng: 0.5 * rng.standard_normal(N)),
    "little": ({"z": 1.5}, lambda u, h, rng: np.mean(h, axis=0) - 1.5 * np.std(h, axis=0)),
    "inner-product": ({"scale": 0.7}, lambda u, h, rng: -0.7 * np.mean(h, axis=0)),
    "labels": ({}, lambda u, h, rng: u),
}
MEANS = {
    "none": lambda rows, before: np.mean(rows, axis=0),
    "median": lambda rows, before: np.median(rows, axis=0),
    "trimmed-mean": lambda rows, before: np.sort(rows, axis=0)[2:-2].mean(axis=0),
    "centred-clipping": lambda rows, before: (
        before + sum((u - before) * min(1, 0.2 / np.linalg.norm(u - before)) for u in rows) / len(rows)
    ),
}
OPTIONS = {"centred-clipping": {"radius": 0.2}}


def loop(method, attack, mean, bad):
    """The models of rounds of gd, or of local-gd with K0 steps, as a loop over clients."""
    x, before = np.zeros(N), np.zeros(N)
    signs = [-1 if attack == "labels" and i in bad else 1 for i in range(M)]
    for round in range(1, ROUNDS + 1):
        changes = []
        for i in range(M):
            w = x
            for _ in range(K0 if method == "local-gd" else 1):
                g = X[i].T @ (X[i] @ w - signs[i] * Y[i]) / D
                w = w - GAMMA * g
            changes.append(g if method == "gd" else w - x)
        honest = [u for i, u in enumerate(changes) if i not in bad]
        for i in bad:
            changes[i] = ATTACKS[attack][1](changes[i], honest, stream(4, "attack", i, round, 0))
        before = MEANS[mean](changes, before)
        x = x - GAMMA * before if method == "gd" else x + before
    return x


LOCAL = [("little", "centred-clipping"), ("labels", "median"), ("inner-product", "trimmed-mean")]
CASES = [  # by default one attack or one mean of gd, and some pairs
    pytest.param(*one, marks=() if ("gd" in one and "none" in one) or one[1:] in LOCAL else pytest.mark.slow)
    for one in itertools.product(("gd", "local-gd"), ATTACKS, MEANS)
]


@pytest.mark.parametrize(("method", "attack", "mean"), CASES)
def test_rounds_are_those_of_a_loop_over_clients(method, attack, mean):
    bad = [1, 4, 8]
    options = {"gamma": GAMMA, **({"k0": K0} if method == "local-gd" else {})}
    table = {"seed": 4, "rounds": ROUNDS, "selection": "all", "algorithm": {"name": method, **options}}
    if attack != "none":
        table["attack"] = {"name": attack, "clients": bad, **ATTACKS[attack][0]}
    if mean != "none":
        table["robust"] = {"name": mean, **OPTIONS.get(mean, {})}
    data = mpifed.arrays(X.reshape(-1, N), Y.reshape(-1), [D] * M)
    found = mpifed.run(table, data=data, problem="least-squares", stop={"gradient": 0.0}, progress=None).x
    expected = loop(method, attack, mean, [] if attack == "none" else bad)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


def test_a_share_is_rounded_down_and_drawn_from_the_seed():
    assert Attack.build({"clients": 0.29}, "attack").attackers(100, 0).sum() == 29
    assert Attack.build({"clients": 1.0}, "attack").attackers(7, 0).all()
    assert not Attack.build({"clients": 0.1}, "attack").attackers(9, 0).any()
    one, other = (Attack.build({"clients": 3}, "attack").attackers(50, seed) for seed in (0, 1))
    assert one.sum() == other.sum() == 3
    assert (one != other).any()


@pytest.mark.parametrize(("k", "f", "s"), [(50, 24, 2), (51, 5, 21), (10, 3, 3)])
def test_a_little_is_as_much_as_the_paper_says(k, f, s):
    assert largest_z(k - f, f) == pytest.approx(max(0.0, norm.ppf((k - f - s) / (k - f))))


def test_attackers_that_are_a_majority_hide_behind_one_honest_client():
    assert largest_z(3, 7) == pytest.approx(norm.ppf(2 / 3))
    assert largest_z(1, 9) == 0.0


@pytest.mark.parametrize("name", ["little", "inner-product"])
def test_without_honest_clients_attackers_know_their_own(name):
    table = {"data": {"clients": 4}, "rounds": 2, "algorithm": "gd", "attack": {"name": name, "clients": 1.0}}
    assert np.isfinite(mpifed.run(table, progress=None).x).all()


def test_uploads_cost_the_same_and_accuracy_is_that_of_true_labels():
    table = {"data": {"name": "digits", "clients": 12, "test": 0.2}, "problem": "softmax", "rounds": 3}
    table |= {"algorithm": "fedavg", "stop": {"gradient": 0.0}}
    plain = mpifed.run(table, progress=None)
    robust = mpifed.run(table | {"robust": "median", "attack": {"name": "labels", "clients": 0.0}}, progress=None)
    for column in ("uploads", "bytes_up", "bytes_down"):
        np.testing.assert_array_equal(plain.rounds[column], robust.rounds[column])
    # nobody attacks: the labels are those of the data
    assert plain.rounds["objective"][0] == robust.rounds["objective"][0]
    changed = mpifed.run(table | {"attack": {"name": "labels", "clients": 1.0}}, progress=None)
    assert changed.rounds["accuracy"][-1] < 0.3 < plain.rounds["accuracy"][-1]


def test_a_method_that_says_too_much_of_itself_is_refused_in_its_round():
    with pytest.raises(UserError, match=r"^round of .* takes more than one plain mean of the uploads of gradient"):
        mpifed.run({"data": {"clients": 5}, "algorithm": f"{__name__}:Twice", "robust": "median"}, progress=None)


class Twice(mpifed.algorithms.GD):
    """Gradient descent that adds up, and says that it averages."""

    def round(self, fed, server):
        return server._replace(x=server.x - server.gamma * fed.sum(self.gradient, server.x) / fed.m)


@pytest.mark.parametrize("problem", ["poisson", "gamma"])
def test_labels_that_a_problem_does_not_take_are_no_fault_of_the_data(problem):
    X = np.random.default_rng(0).standard_normal((30, 2))
    study = {"algorithm": {"name": "gd", "gamma": 0.01}, "selection": "all", "rounds": 2, "problem": problem}
    data = mpifed.arrays(X, np.arange(30) % 4 + 1.0, [10, 10, 10])
    with pytest.raises(UserError, match=r'^attack = "labels" is wrong: .*: labels must be .*; attack = "sign-flip" c'):
        mpifed.run(study, data=data, attack={"name": "labels", "clients": [1]})
    result = mpifed.run(study, data=data, attack={"name": "sign-flip", "clients": [1]})
    assert (result.status, result.cr) == ("finished", 2)
    assert mpifed.run(study, data=data, attack={"name": "labels", "clients": 0.0}).cr == 2


def test_clipping_goes_on_from_its_last_mean_after_an_interruption(tmp_path):
    table = {"data": {"clients": 5, "features": 4}, "algorithm": "gd", "stop": {"gradient": 0.0}}
    table |= {"robust": {"name": "centred-clipping", "radius": 0.2}}
    whole = mpifed.run(table, rounds=4, progress=None)
    mpifed.run(table, rounds=2, path=tmp_path / "2.h5", progress=None)
    assert mpifed.resume(tmp_path / "2.h5", {"rounds": 4}, progress=None).x.tobytes() == whole.x.tobytes()
