"""Clipped gradients of local steps, against torch and in methods."""

import numpy as np
import pytest

import mpifed
from mpifed import UserError
from mpifed.algorithms import FedAvg, FedProx
from mpifed.algorithms.parts import stochastic_solvers
from mpifed.algorithms.parts.optimizers import SGD, Adam, AdamW, Momentum, clipped
from mpifed.algorithms.parts.step_sizes import Constant
from mpifed.federation.participation.selection import Uniform
from tests.helpers.algorithm_runs import M, N, Run, build, gradients

MOST = 0.7
RULES = [SGD(clip=MOST), Momentum(clip=MOST, weight_decay=0.1), Adam(clip=MOST), AdamW(clip=MOST)]
EVERYONE = Uniform(share=1.0)


def gradient(w):
    return 3 * (w - np.array([1.0, -2.0, 0.5]))


@pytest.mark.torch
@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_an_optimizer_clips_as_clip_grad_norm_and_then_an_optimizer_of_torch(rule):
    torch = pytest.importorskip("torch", reason="PyTorch is not there: pip install mpifed[torch]")
    x = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    kinds = {SGD: torch.optim.SGD, Momentum: torch.optim.SGD, Adam: torch.optim.Adam, AdamW: torch.optim.AdamW}
    options = {"momentum": 0.9} if isinstance(rule, Momentum) else {}
    optimizer = kinds[type(rule)]([x], lr=0.1, weight_decay=getattr(rule, "weight_decay", 0.0), **options)
    W, memory, cut = np.zeros((1, 3)), None, 0
    for _ in range(40):
        x.grad = torch.tensor(gradient(x.detach().numpy()))
        cut += float(torch.nn.utils.clip_grad_norm_([x], MOST)) > MOST
        optimizer.step()
        W, memory = rule.step(W, gradient(W[0])[None], 0.1, memory)
        assert np.allclose(W[0], x.detach().numpy(), rtol=1e-12, atol=1e-13)
    assert 0 < cut < 40  # some gradients are cut, some are not


def test_a_client_is_clipped_by_its_own_norm_alone():
    g = np.random.default_rng(1).standard_normal((5, 40)) * np.array([[0.01], [1], [5], [0], [100]])
    together = clipped(g, 2.0)
    assert together.tobytes() == np.concatenate([clipped(g[i : i + 1].copy(), 2.0) for i in range(5)]).tobytes()
    assert np.array_equal(together[[0, 3]], g[[0, 3]])
    assert np.allclose(np.linalg.norm(together[[1, 2, 4]], axis=1), 2.0, rtol=1e-6)
    assert clipped(g.astype(np.float32), 2.0).dtype == np.float32


def cut(g, most):
    return g * min(1, most / (np.linalg.norm(g) + 1e-6))


@pytest.mark.parametrize("mu", [0.0, 0.5])
def test_a_method_gives_its_whole_direction_to_the_optimizer_which_clips_it(mu):
    """FedProx with its proximal term; with mu = 0 it is FedAvg."""
    options = {"k0": 3, "step": Constant(a=0.1), "optimizer": SGD(clip=0.2)}
    run = Run(FedProx(mu=mu, inner=1, **options) if mu else FedAvg(**options), selection=EVERYONE)
    x = np.zeros(N)
    for model in run.rounds(2):
        W = np.tile(x, (M, 1))
        for _ in range(3):
            G = gradients(run, W) + mu * (W - x)
            W = W - 0.1 * np.array([cut(g, 0.2) for g in G])
        x = W.mean(axis=0)
        assert np.allclose(model, x, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", ["feddyn", "fedpd", "flame", "pfedme", "fedadmm-deep", "ditto", "apfl", "fedbuff"])
def test_other_methods_with_an_optimizer_clip_too(name):
    plain, cut = (Run(build(name, {"optimizer": {"name": "sgd", "clip": clip}})).rounds(2)[-1] for clip in (0.0, 1e-3))
    assert not np.array_equal(plain, cut)


@pytest.mark.parametrize("kind", [stochastic_solvers.SGD, stochastic_solvers.Adam])
def test_stochastic_solvers_of_dual_methods_clip_too(kind):
    assert kind(clip=0.3).rule().clip == 0.3


def test_a_bound_that_no_gradient_reaches_changes_no_bit():
    some, none = (Run(FedAvg(optimizer=SGD(clip=clip))).rounds(3)[-1] for clip in (1e9, 0.0))
    assert some.tobytes() == none.tobytes()


def test_fednova_refuses_it_and_no_theorem_covers_it():
    with pytest.raises(UserError, match=r"^algorithm: optimizer = sgd is wrong: fednova .*, and without clip$"):
        build("fednova", {"optimizer": {"name": "sgd", "clip": 1.0}})
    study = {"algorithm": {"name": "fedavg", "k0": 1, "step": 0.01, "certify": True, "optimizer": {"clip": 1.0}}}
    assert not mpifed.run(study, rounds=2, selection="all", progress=False).certificate.bounds
