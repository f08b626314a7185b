"""Optimisers of local steps: against loops written out, against torch.optim, and in the algorithms that take one."""

from typing import Annotated

import numpy as np
import pytest
from msgspec import Meta
from msgspec.structs import replace

from mpifed import UserError
from mpifed.algorithms import FedAvg, FedProx
from mpifed.algorithms.parts.optimizers import SGD, Adam, AdamW, Momentum, Optimizer
from mpifed.algorithms.parts.step_sizes import ConstantStep
from mpifed.extend import Algorithm
from mpifed.federation.participation.selection import UniformSelection
from tests.helpers.algorithm_runs import M, N, Run, build, gradients

STEPS, GAMMA = 40, 0.03
RULES = [
    SGD(),
    Momentum(),
    Momentum(beta=0.5, nesterov=True),
    Momentum(beta=0.7, weight_decay=0.2),
    Adam(),
    Adam(beta1=0.5, beta2=0.9, eps=1e-3, weight_decay=0.2),
    AdamW(),
    AdamW(beta1=0.8, weight_decay=0.3),
]
EVERYONE = UniformSelection(share=1.0)


def gradient(w):
    return (np.diag([0.1, 1.0, 4.0]) + 0.1) @ (w - np.array([1.0, -2.0, 0.5]))


def written_out(rule, gradient, w, steps, gamma):
    """The rule for one client, one number at a time."""
    v = [0.0] * len(w)
    mean = [0.0] * len(w)
    squares = [0.0] * len(w)
    for t in range(1, steps + 1):
        g, new = gradient(w), w.copy()
        if rule.clip:
            g = g * min(1, rule.clip / (np.linalg.norm(g) + 1e-6))
        for j in range(len(w)):
            gj = g[j]
            if isinstance(rule, Momentum | Adam) and not isinstance(rule, AdamW):
                gj += rule.weight_decay * w[j]
            if isinstance(rule, SGD):
                d = gj
            elif isinstance(rule, Momentum):
                v[j] = rule.beta * v[j] + gj
                d = gj + rule.beta * v[j] if rule.nesterov else v[j]
            else:
                mean[j] = rule.beta1 * mean[j] + (1 - rule.beta1) * gj
                squares[j] = rule.beta2 * squares[j] + (1 - rule.beta2) * gj**2
                d = mean[j] / (1 - rule.beta1**t) / ((squares[j] / (1 - rule.beta2**t)) ** 0.5 + rule.eps)
                d += rule.weight_decay * w[j] if isinstance(rule, AdamW) else 0
            new[j] = w[j] - gamma * d
        w = new
    return w


CLIPPED = [replace(rule, clip=0.7) for rule in (SGD(), Momentum(weight_decay=0.1), Adam(), AdamW())]
OF_WEIGHTS = [replace(rule, weight_decay=0.2, decay="weights") for rule in (Momentum(), Adam(), AdamW())]


@pytest.mark.torch
@pytest.mark.parametrize("rule", [*RULES, *CLIPPED, *OF_WEIGHTS], ids=repr)
def test_an_optimizer_is_that_of_torch(rule):
    """Clipped after clip_grad_norm_; with the first two coordinates weights, which alone may decay, and a bias."""
    torch = pytest.importorskip("torch", reason="PyTorch is not there: pip install mpifed[torch]")
    kinds = {SGD: torch.optim.SGD, Momentum: torch.optim.SGD, Adam: torch.optim.Adam, AdamW: torch.optim.AdamW}
    parts = [torch.zeros(count, dtype=torch.float64, requires_grad=True) for count in (2, 1)]
    decay = getattr(rule, "weight_decay", 0.0)
    options = {}
    if isinstance(rule, Momentum):
        options = {"momentum": rule.beta, "nesterov": rule.nesterov}
    elif not isinstance(rule, SGD):
        options = {"betas": (rule.beta1, rule.beta2), "eps": rule.eps}
    decays = [decay, 0.0 if getattr(rule, "decay", "") == "weights" else decay]
    groups = [{"params": [part], "weight_decay": own} for part, own in zip(parts, decays, strict=True)]
    optimizer = kinds[type(rule)](groups, lr=GAMMA, **options)
    if decays[0] != decays[1]:
        rule = replace(rule, weight_decay=decay * np.array([1.0, 1.0, 0.0]))  # as a problem that knows its weights does
    W = np.zeros((1, 3))
    memory, cut = None, 0
    for _ in range(STEPS):
        parts[0].grad, parts[1].grad = torch.tensor(gradient(W[0])).split([2, 1])
        if rule.clip:
            cut += float(torch.nn.utils.clip_grad_norm_(parts, rule.clip)) > rule.clip
        optimizer.step()
        W, memory = rule.step(W, gradient(W[0])[None], GAMMA, memory)
        assert np.allclose(W[0], torch.cat(parts).detach().numpy(), rtol=1e-12, atol=1e-13)
    assert not rule.clip or cut > 0  # some gradients are cut


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_a_client_that_rests_keeps_its_memory_and_does_not_depend_on_the_others(rule):
    """Two clients of which the second has no sample left in every third mini-batch."""
    memory, memories = None, [None, None]
    W, own = np.zeros((2, 3)), [np.zeros((1, 3)), np.zeros((1, 3))]
    for k in range(12):
        gamma = GAMMA * np.array([[1.0], [float(k % 3 != 2)]])
        W, memory = rule.step(W, np.array([gradient(w) for w in W]), gamma, memory)
        for i in range(2):
            if gamma[i, 0]:
                own[i], memories[i] = rule.step(own[i], gradient(own[i][0])[None], GAMMA, memories[i])
    assert W.tobytes() == np.concatenate(own).tobytes()


def of_all_clients(run, rule, x, steps, factor=1.0, mu=0.0):
    """The mean of the models after so many steps from x on factor·f_i(w) + (mu/2)‖w − x‖², each with a new memory."""

    def own(i):
        return lambda w: factor * gradients(run, np.tile(w, (M, 1)))[i] + mu * (w - x)

    return np.mean([written_out(rule, own(i), x, steps, 0.02) for i in range(M)], axis=0)


@pytest.mark.parametrize(
    "rule",
    [*RULES[1:3], *RULES[5::2], *CLIPPED, *(pytest.param(RULES[k], marks=pytest.mark.slow) for k in (0, 3, 4, 6))],
    ids=repr,
)
def test_fedavg_takes_its_steps_in_the_direction_of_the_optimizer_and_forgets_at_the_end_of_a_round(rule):
    run = Run(FedAvg(k0=4, step=ConstantStep(a=0.02), optimizer=rule), selection=EVERYONE)
    x = np.zeros(N)
    for model in run.rounds(2):
        x = of_all_clients(run, rule, x, 4)
        assert np.allclose(model, x, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("scale", "rule"), [("1", Momentum(beta=0.8)), ("1/m", Momentum(beta=0.8)), ("1", SGD(clip=0.2))], ids=str
)
def test_fedprox_gives_the_optimizer_the_gradient_of_its_whole_local_objective(scale, rule):
    """With scale 1/m that is f_i/m + (mu/2)‖w − x‖²; momentum is linear, so the factor may stand before or after."""
    x = np.zeros(N)
    algorithm = FedProx(k0=2, inner=3, mu=0.5, scale=scale, step=ConstantStep(a=0.02), optimizer=rule)
    run = Run(algorithm, selection=EVERYONE)
    for model in run.rounds(2):
        x = of_all_clients(run, rule, x, 6, factor=1.0 if scale == "1" else 1 / M, mu=0.5)
        assert np.allclose(model, x, rtol=1e-10, atol=1e-12)


TAKES = [
    "fedavg",
    "fedopt",
    "fedprox",
    "fedpd",
    "flame",
    "flame-dp",
    "pfedme",
    "fedadmm-deep",
    "ditto",
    "apfl",
    "fedrep",
]
TAKES += ["feddyn", "fednova", "fedbuff", "q-fedavg", "fedvarp", "mifa"]


@pytest.mark.parametrize("name", [name for name in Algorithm.choices if name not in TAKES])
def test_a_method_that_cannot_take_an_optimizer_says_why(name):
    why = {
        "scaffold": r"\(x − y\)/Σγ renews the control variates, and is a mean gradient for plain gradient steps only",
        "sfedavg": "the noise is calibrated for plain gradient steps",
        "sfedprox": "the noise is calibrated for plain gradient steps",
        "local-gd": "it is plain gradient descent; fedavg takes optimisers",
    }.get(name, "it has no local gradient steps with a step size γ")
    with pytest.raises(UserError, match=rf"^algorithm\.optimizer cannot be set: {why}$"):
        build(name, {"optimizer": "adam"})


class Sign(Optimizer):
    """d = sign(g)."""

    scale: Annotated[float, Meta(gt=0, description="length of d in each coordinate")] = 1.0

    def direction(self, memory, g, w):
        return self.scale * np.sign(g), memory


def test_an_optimizer_of_your_own_is_named_by_its_module():
    rule = {"name": f"{__name__}:Sign", "scale": 2.0}
    options = {"k0": 1, "step": {"name": "constant", "a": 0.01}, "optimizer": rule}
    run = Run(build("fedavg", options), selection=EVERYONE)
    wanted = -0.02 * np.sign(gradients(run, np.zeros(N))).mean(axis=0)
    assert np.allclose(run.rounds(1)[-1], wanted, rtol=1e-12)
    assert {Optimizer.member(name, "optimizer").label() for name in Optimizer.choices} == set(Optimizer.choices)
