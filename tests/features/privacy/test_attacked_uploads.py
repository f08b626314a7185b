"""Guarantees of single uploads attacked: flame-dp hides all data of a client, fedepm with clipped noise one sample.

As in test_attacked, but what is released are uploads: those of the first run take the place of those of the second.
"""

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import kstest

import mpifed
from mpifed.algorithms.parts import noise
from mpifed.algorithms.parts.noise import ClippedNoise, GaussianMechanism
from mpifed.core.discrete_noise import draw_discrete_gaussian, draw_discrete_laplace, entropy_words, laplace_steps
from mpifed.core.errors import UserError
from mpifed.features.privacy.correlated_noise import CorrelatedNoise, find_bands
from mpifed.features.privacy.discrete_gaussian import draw_rows
from mpifed.features.privacy.mechanisms import Release, SumSizes, draw_half_steps, draw_noise
from tests.features.privacy.test_attacked import ONE, SIZES, D, N, X, Y, find_public, merged

pytest.importorskip("dp_accounting")

CLIP = 0.05
METHODS: dict[str, dict[str, Any]] = {
    "flame-dp": {"name": "flame-dp", "clip": CLIP, "noise_multiplier": 2.0, "batch_size": 0, "epochs": 2, "lr": 0.05},
    "fedepm": {"name": "fedepm", "noise": "clipped", "epsilon": 0.5, "k0": 2, "clip": 1.0},
}
BASE = {"problem": "least-squares", "rounds": 3, "stop": {"diverged": 0}, "progress": None, "evaluate": {"every": 3}}
SUM = {"algorithm": {"seen": "sum"}, "selection": "all"}
OPTIONS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "alone": ({}, {}),
    "all": ({"selection": "all"}, {}),
    "sums": (SUM, {"fedepm": "unknown key 'algorithm.seen'"}),
    "masked sums": (SUM | {"masks": {"sums": "masked", "fraction": 40}}, {"fedepm": "unknown key 'algorithm.seen'"}),
    "dropout": ({"system": {"dropout": 0.1}, "selection": "all"}, {}),
    "sums with dropout": (
        SUM | {"system": {"dropout": 0.3}},
        {"flame-dp": "it must be absent", "fedepm": "unknown key"},
    ),
    "late clients": ({"system": {"speed": 100, "deadline": 0.3}}, {}),
    "mini-batches": ({"algorithm": {"batch_size": 2}}, {"fedepm": "unknown key 'algorithm.batch_size'"}),
    "float32": ({"dtype": "float32"}, {"fedepm": 'must be "float64"'}),
    "sums in float32": (SUM | {"dtype": "float32"}, dict.fromkeys(METHODS, 'must be "float64"|unknown key')),
    "weights": ({"objective": {"weights": [1.0] * 11 + [2.0]}}, dict.fromkeys(METHODS, "objective.weights")),
    "robust mean": ({"robust": "median"}, dict.fromkeys(METHODS, "robust")),
    "attack": ({"attack": {"name": "sign-flip", "clients": 2}}, dict.fromkeys(METHODS, "attack")),
    "compressed sums": (
        SUM | {"compress": {"up": {"name": "topk", "k": 1}}},
        dict.fromkeys(METHODS, "unknown key|must be absent"),
    ),
    "importance": ({"selection": {"name": "importance", "count": 3}}, dict.fromkeys(METHODS, "exact numbers")),
    "models": ({"record": {"models": 1}}, {}),
    "small blocks": ({"block_bytes": 1}, {}),
    "cyclic": ({"selection": {"name": "cyclic", "count": 4}}, {}),
    "poisson": ({"selection": {"name": "poisson", "share": 0.5}}, {}),
}


@pytest.fixture
def play(monkeypatch):
    """Run a study, and return its result and (clients, vectors before noise, reach) of all uploads.

    ``released``: uploads of another run, which take the place of those of this one.
    """
    state: dict[str, Any] = {}
    upload, add_noise = ClippedNoise.upload, GaussianMechanism.add_noise

    def bare(compute):
        with monkeypatch.context() as patch:
            patch.setattr(noise, "draw_discrete", lambda sampler, f, scale, seed: np.zeros((len(scale), f.n), int))
            return compute()

    def release(ids, vectors, reach, noisy):
        state["sent"].append((ids.copy(), vectors, reach, noisy))
        return noisy if state["released"] is None else state["released"][len(state["sent"]) - 1][3]

    def laplace(self, f, w, stand_in, reach=0.0):
        vectors = bare(lambda: upload(self, f, w, stand_in, reach))[0]
        z, ratio = upload(self, f, w, stand_in, reach)
        return release(f.ids, vectors, np.array(reach), z), ratio

    def gaussian(self, f, Z, w, parts):
        vectors = bare(lambda: add_noise(self, f, Z, w, parts))
        return release(f.ids, vectors, self.clip, add_noise(self, f, Z, w, parts))

    monkeypatch.setattr(ClippedNoise, "upload", laplace)
    monkeypatch.setattr(GaussianMechanism, "add_noise", gaussian)

    def run(table, X, Y, released=None):
        state.update(sent=[], released=released)
        return mpifed.run(data=mpifed.arrays(X.reshape(-1, N), Y.reshape(-1), SIZES), **table), state["sent"]

    return run


@pytest.mark.parametrize("option", OPTIONS)
@pytest.mark.parametrize("method", METHODS)
def test_uploads_move_by_no_more_than_their_noise_is_sized_for_and_those_of_others_stay(method, option, play):
    words, refused = OPTIONS[option]
    table = merged(BASE | {"algorithm": METHODS[method]}, words)
    if method in refused:
        with pytest.raises(UserError, match=refused[method]):
            play(table, X, Y)
        return
    result, sent = play(table, X, Y)
    assert result.attrs["privacy"].startswith("guaranteed: ")
    moved = []
    for size in (5.0, 1e30):
        other = X.copy()
        samples = slice(0, 1) if method == "fedepm" else slice(None)  # one sample, or all of the client
        other[ONE, samples] = size * np.random.default_rng(5).standard_normal((D, N))[samples]
        found, second = play(table, other, Y, sent)
        for (ids, vectors, reach, _), (same, others, *_) in zip(sent, second, strict=True):
            assert (ids == same).all()
            far = np.abs(others - vectors)
            assert not far[ids != ONE].any()
            if method == "fedepm":
                # rounding to the grid moves each number by one step at most, for which the noise is sized
                step = laplace_steps(reach, N, 0.5)[0]
                assert (far.sum(axis=1) <= reach + N * step).all()
                moved += (far.sum(axis=1) / reach).tolist()
            else:
                assert (np.linalg.norm(far, axis=1) <= 2 * CLIP).all()
                moved += (np.linalg.norm(far, axis=1) / CLIP).tolist()
        but = ("models", "snr", "notes")  # notes tell of spread-out step sizes
        assert find_public(found, but) == find_public(result, but)
        assert (found.x == result.x).all()
    assert max(moved) > 0.1


# the law of the noise: Kolmogorov and Smirnov's test of 200,000 numbers. A right law passes but for 3 runs in a
# million, one with a deviation that is wrong by 5 % with a probability below 1e-3, and here what was drawn is told
# from such a law
COUNT, LIMIT = 200_000, 2.6


def draw_correlated():
    """Return the first noise of a run, which nothing is subtracted from."""
    mechanism = CorrelatedNoise(bands=8)
    release = Release(1.0, 3.0, None, 0, 1, {})
    plan = mechanism.plan(release, SumSizes(COUNT, 1, 1), np.dtype(np.float64))
    return mechanism.add_noise(np.zeros(COUNT), release, plan, COUNT), 3.0 * np.linalg.norm(find_bands(8))


LAWS = {
    "gaussian": lambda: (draw_noise(COUNT, 3.0, None), 3.0),
    "gaussian with a seed": lambda: (draw_noise(COUNT, 3.0, np.random.default_rng(0)), 3.0),
    "correlated": draw_correlated,
    "of clients": lambda: (draw_rows(260.0, (100, COUNT // 100), None).reshape(-1) + 0.0, 260.0),
    "of uploads": lambda: (draw_discrete_gaussian(np.full(COUNT, 1500), entropy_words) + 0.0, 1500.0),
    "of counts": lambda: (np.array([draw_half_steps(4.0, None) for _ in range(COUNT // 100)]), 4.0),
    "laplace": lambda: (draw_discrete_laplace(np.full(COUNT, 1500), entropy_words) + 0.0, 1500.0),
}


def find_distance(numbers, scale, law):
    """Return √n times the largest distance of two distribution functions."""
    return math.sqrt(len(numbers)) * kstest(numbers / scale, law).statistic


@pytest.mark.parametrize("name", LAWS)
def test_noise_has_its_law_and_a_deviation_that_is_wrong_by_a_twentieth_would_be_seen(name):
    numbers, scale = LAWS[name]()
    law = "laplace" if name == "laplace" else ndtr
    assert find_distance(numbers, scale, law) < LIMIT
    if len(numbers) == COUNT:
        assert min(find_distance(numbers, scale * factor, law) for factor in (0.95, 1.05)) > LIMIT
