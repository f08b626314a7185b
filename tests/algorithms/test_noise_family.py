"""The family of noises: what an algorithm offers is in it, and a method of one's own can take one."""

from typing import Literal, NamedTuple

import numpy as np
import pytest
from scipy.stats import kstest

from mpifed import Array, UserError
from mpifed.algorithms.parts.noise import NOISES, Noisy, log_ratio
from mpifed.experiment.config import experiment
from mpifed.federation.participation.selection import Uniform
from tests.helpers.algorithm_runs import M, N, Run, gradients


@pytest.mark.parametrize("name", ["fedepm", "sfedavg", "sfedprox"])
def test_the_option_stays_a_word_and_its_numbers_stay_beside_it(name):
    text = experiment({"algorithm": {"name": name, "noise": "matched", "epsilon": 0.7}}).toml()
    assert '\nnoise = "matched"\n' in text
    assert "\nepsilon = 0.7\n" in text
    with pytest.raises(UserError, match=r'algorithm\.noise = "loud" is wrong: it must be "released" or "matched" or '):
        experiment({"algorithm": {"name": name, "noise": "loud"}})


class Client(NamedTuple):
    w: Array
    z: Array
    ratio: Array


class Server(NamedTuple):
    x: Array
    uploads: Array


class NoisyDescent(Noisy):
    """One gradient step a round, uploaded with noise: a method that takes the family as FedEPM does."""

    gamma: float = 0.05
    epsilon: float = 2.0
    noise: Literal["released", "matched", "none"] = "matched"

    def mechanism(self):
        return NOISES[self.noise](self.epsilon, mu0=10.0)

    def join(self, f):
        return Client(f.initial(), f.zeros(), np.full(len(f), np.inf))

    def start(self, fed):
        return Server(x=fed.mean(self.first), uploads=np.zeros(fed.m))

    def round(self, fed, server):
        selected = fed.select(server.x)
        x = fed.mean(self.update, server.x, to=selected)
        return Server(x, server.uploads + fed.mask(selected))

    def update(self, f, client, x):
        noise, g = self.mechanism(), f.grad(x)
        w = x - self.gamma * g
        z, ratio = noise.upload(f, w, noise.rate(1.0, self.gamma) * 2 * np.abs(g).sum(axis=1))
        return Client(w, z, ratio), z


@pytest.mark.parametrize(("noise", "rate"), [("released", 1.0), ("matched", 0.05)])
def test_a_method_of_ones_own_takes_a_noise(noise, rate):
    run, found = Run(NoisyDescent(noise=noise), selection=Uniform(share=1.0)), []
    x = run.server.x
    for _ in range(20):
        model = run.rounds(1)[-1]
        g, state = gradients(run, x), run.states()
        assert np.allclose(state.w, x - 0.05 * g, rtol=1e-9)
        assert np.allclose(state.ratio, log_ratio(state.w, state.z - state.w))
        found.append((state.z - state.w) / (rate * np.abs(g).sum(axis=1))[:, None])  # 2‖g‖₁ over ε = 2
        x = model
    values = np.concatenate(found).ravel()
    assert len(values) == 20 * M * N
    assert kstest(values, "laplace").pvalue > 0.01
    assert kstest(1.25 * values, "laplace").pvalue < 0.01
    report = run.algorithm.report(run.server, {"snr": -run.states().ratio.min()}, M)
    assert report == {"snr": run.states().ratio.min(), "epsilon": 2.0 * 20}


def test_a_method_of_ones_own_can_be_silent():
    run = Run(NoisyDescent(noise="none"), selection=Uniform(share=1.0))
    assert not run.server.x.any()
    model = run.rounds(1)[-1]
    assert np.allclose(model, -0.05 * gradients(run, np.zeros(N)).mean(axis=0), rtol=1e-9)
    assert run.algorithm.report(run.server, {"snr": -np.inf}, M) == {}
