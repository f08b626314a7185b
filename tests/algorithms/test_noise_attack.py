"""The attack on the noise: who sees the uploads, the models and the result file tries to subtract it.

The attacker knows the program, the experiment in the file with its seed, and what travels: x down, z_i up. Noise from
the run's seed, or from a noise_seed, falls; noise from the system's entropy stands.
"""

from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import brentq

import mpifed
from mpifed.algorithms import FedEPM, SFedAvg
from mpifed.core.discrete_noise import draw_discrete_laplace, laplace_steps, seeded_words
from mpifed.core.streams import stream

FEATURES, SAMPLES = 6, 9
TABLE = {
    "seed": 11,
    "rounds": 3,
    "data": {"name": "linreg-noniid", "clients": 5, "features": FEATURES, "least": SAMPLES, "most": SAMPLES},
    "selection": {"name": "all"},
}
EPM = {"name": "fedepm", "k0": 1, "mu0": 30.0, "step_scale": "one", "lam": 1e-6, "eta": 2e-3, "epsilon": 8.0}
AVG = {"name": "sfedavg", "k0": 1, "step": {"name": "constant", "a": 0.003}, "epsilon": 2e4}


class Seen(NamedTuple):
    """One round: the model sent down and the uploads; ``w`` only to judge the attack."""

    x: np.ndarray
    z: np.ndarray
    w: np.ndarray


def observed(monkeypatch, path, algorithm, **settings):
    """The result file of a run, and what travelled in its rounds."""
    kind = FedEPM if algorithm["name"] == "fedepm" else SFedAvg
    original, seen = kind.update, []

    def update(self, f, client, x, *args):
        new, z = original(self, f, client, x, *args)
        seen.append(Seen(x.copy(), z.copy(), new.w.copy()))
        return new, z

    with monkeypatch.context() as patch:
        patch.setattr(kind, "update", update)
        mpifed.run(TABLE | {"algorithm": algorithm} | settings, path=path)
    return mpifed.load(path), seen


def unit(result, client, round):
    """Laplace noise of scale 1 from the seed in the file."""
    return stream(int(result.attrs["seed"]), "clients", client, round, 0).laplace(0.0, 1.0, FEATURES)


def growth(mu0, x):
    """μ_i of round 1: every client starts from w_i = 0."""
    return mu0 * (1 + 1e-8 * np.sum(x**2)) * 1.001


def gradient(algorithm, z, x, noise):
    """The gradient that a client's upload of round 1 tells when the noise is known."""
    if algorithm["name"] == "sfedavg":
        return (x - (z - noise)) / algorithm["step"]["a"]
    mu = growth(30.0, x)
    eta = algorithm["eta"]
    lam = algorithm["lam"]
    moved = z - noise - x  # soft(μ(0 − x) − g, λ)/(η + μ)
    return -mu * x - (eta + mu) * moved - lam * np.sign(moved)


def guesses(algorithm, z, x, noise):
    """w_i for each scale s with s = 2‖g‖₁·rate/ε, (39): the only number that the attacker lacks."""
    rate = {"fedepm": 1 / growth(30.0, x), "sfedavg": 1 / growth(0.05, x)}[algorithm["name"]]
    if algorithm["name"] == "sfedavg" and algorithm["noise"] == "matched":
        rate = algorithm["step"]["a"]

    def excess(s):
        return 2 * np.abs(gradient(algorithm, z, x, s * noise)).sum() * rate / algorithm["epsilon"] - s

    scales = np.geomspace(1e-9, 1e6, 800)
    signs = np.sign([excess(s) for s in scales])
    changes = np.flatnonzero(np.diff(signs))
    return [z - brentq(excess, *scales[k : k + 2], xtol=1e-300, rtol=1e-15) * noise for k in changes]


@pytest.mark.parametrize("noise", ["released", "matched"])
@pytest.mark.parametrize("algorithm", [EPM, AVG], ids=["fedepm", "sfedavg"])
def test_noise_from_the_seed_in_the_file_is_subtracted(algorithm, noise, monkeypatch, tmp_path):
    """One scale is unknown, and one equation, (39), gives it: w_i is found, and so is the gradient."""
    result, seen = observed(monkeypatch, tmp_path / "out.h5", algorithm | {"noise": noise})
    assert str(result.attrs["privacy"]).startswith("none: ")
    options, (x, z, w) = result.config["algorithm"], seen[0]
    for i in range(5):
        found = guesses(options, z[i], x, unit(result, i, 1))
        assert 1 <= len(found) <= 2
        assert min(np.abs(guess - w[i]).max() for guess in found) < 1e-10 * np.abs(w[i]).max()


CLIPPED = EPM | {"noise": "clipped", "clip": 2.0, "epsilon": 1.0}


def reach(round):
    """What the attacker knows of the sensitivity: everything, for it does not depend on the data."""
    found = 0.0
    for k in range(round):
        mu = 30.0 * 1.001 ** (k + 1)
        found = (mu * found + 2 * 2.0 / SAMPLES) / (2e-3 + mu)
    return np.array([found])


def subtracted(z, client, round, seed):
    """The upload less the noise of ``seed``; also what it would be were that noise from a run's own stream."""
    step, scale = laplace_steps(reach(round), FEATURES, 1.0)
    steps = draw_discrete_laplace(np.full(FEATURES, scale[0]), seeded_words(stream(seed, "noise", client, round, 0)))
    plain = stream(seed, "clients", client, round, 0)
    whole = draw_discrete_laplace(np.full(FEATURES, scale[0]), seeded_words(stream(seed, "clients", client, round, 0)))
    return [z - steps * step[0], z - whole * step[0], z - plain.laplace(0.0, reach(round)[0], FEATURES)], step[0]


def test_a_noise_seed_in_the_file_is_subtracted_to_half_a_step(monkeypatch, tmp_path):
    result, seen = observed(monkeypatch, tmp_path / "out.h5", CLIPPED | {"noise_seed": 7})
    assert "noise_seed = 7" in str(result.attrs["privacy"])
    assert str(result.attrs["privacy"]).startswith("none: ")
    for round, (_, z, w) in enumerate(seen, 1):
        for i in range(5):
            (found, *_), step = subtracted(z[i], i, round, result.config["algorithm"]["noise_seed"])
            assert np.abs(found - w[i]).max() <= step / 2 * (1 + 1e-9)


def test_noise_from_entropy_cannot_be_subtracted(monkeypatch, tmp_path):
    """With no seed that the attacker can read or guess does a guess come much nearer to w_i than the upload itself.

    Neither the clients' models nor the noise are anywhere in the file, as numbers of eight bytes.
    """
    path = tmp_path / "out.h5"
    result, seen = observed(monkeypatch, path, CLIPPED, record={"models": 1})
    content = path.read_bytes()
    assert str(result.attrs["privacy"]).startswith("guaranteed: ")
    assert "noise_seed" not in result.config["algorithm"]
    assert seen[-1].x.tobytes()[:8] in content  # models are published
    for round, (_, z, w) in enumerate(seen, 1):
        assert not any(value.tobytes() in content for value in np.concatenate([w, z - w]).ravel())
        for seed in (11, *range(10)):
            error = [np.abs(guess - w[i]).mean() for i in range(5) for guess in subtracted(z[i], i, round, seed)[0]]
            assert np.mean(error) > 0.25 * reach(round)[0]  # 1.5 ± 0.24 expected: numbers of scale 1, less others
