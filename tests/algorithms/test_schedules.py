"""Learning-rate schedules: γ is that of torch.optim.lr_scheduler, by round and by local step."""

import numpy as np
import pytest
from msgspec.structs import replace

from mpifed import steps
from mpifed.algorithms.parts.step_sizes import Step
from tests.helpers.algorithm_runs import Run, build

D = np.array([[3.0], [5.0]])  # samples of two clients
LONG = 60


def gammas(rule, count=LONG, k0=1):
    return [rule.gamma(k, k0, D) for k in range(count)]


def by_torch(schedule, count=LONG, lr=0.1):
    """The learning rates that a scheduler of torch sets, one step after the other."""
    torch = pytest.importorskip("torch", reason="PyTorch is not there: pip install mpifed[torch]")
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=lr)
    scheduler = schedule(torch.optim.lr_scheduler, optimizer)
    found = []
    for _ in range(count):
        found.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return found


def warm_then_step(lr, optimizer):
    after = lr.StepLR(optimizer, 7, 0.5)
    return lr.SequentialLR(optimizer, [lr.LinearLR(optimizer, 0.2, 1.0, 6), after], [6])


def warm_then_cosine(lr, optimizer):
    after = lr.CosineAnnealingLR(optimizer, LONG - 4, 1e-3)
    return lr.SequentialLR(optimizer, [lr.LinearLR(optimizer, 1 / 3, 1.0, 4), after], [4])


CASES = {
    "step": (steps.StepDecay(a=0.1, decay=0.3, every=8), lambda lr, opt: lr.StepLR(opt, 8, 0.3)),
    "cosine": (steps.Cosine(a=0.1, least=0.01, over=LONG), lambda lr, opt: lr.CosineAnnealingLR(opt, LONG, 0.01)),
    "warm-up": (steps.Warmup(over=5, then=steps.ConstantStep(a=0.1)), lambda lr, opt: lr.LinearLR(opt, 1 / 3, 1.0, 5)),
    "warm-up, then step": (
        steps.Warmup(over=6, first=0.2, then=steps.StepDecay(a=0.1, decay=0.5, every=7)),
        warm_then_step,
    ),
    "warm-up, then cosine": (
        steps.Warmup(over=4, then=steps.Cosine(a=0.1, least=1e-3, over=LONG - 4)),
        warm_then_cosine,
    ),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", CASES)
def test_a_schedule_is_that_of_torch(name):
    """Also with four local steps a round, after each of which torch's scheduler goes on."""
    rule, theirs = CASES[name]
    right = by_torch(theirs)
    assert np.allclose(gammas(rule), right, rtol=0, atol=1e-12)
    assert "then" not in name or np.allclose(gammas(replace(rule, by="step"), k0=4), right, rtol=0, atol=1e-12)


def test_the_unit_of_a_warm_up_is_that_of_what_follows_it_unless_this_has_its_own():
    after = {"name": "step", "a": 1.0, "decay": 0.5, "every": 2}
    table = {"name": "warmup", "over": 2, "first": 0.5, "by": "step", "then": after}

    def found(**options):
        return gammas(Step.build(table | options, "step"), 8, k0=2)

    assert found() == found(then=after | {"by": "step"}) == [0.5, 0.75, 1, 1, 0.5, 0.5, 0.25, 0.25]
    assert found(then=after | {"by": "round"}) == [0.5, 0.75, 1, 1, 1, 1, 0.5, 0.5]
    assert found(by="round") == [0.5, 0.5, 0.75, 0.75, 1, 1, 1, 1]
    assert found(by="round", then=after | {"by": "step"}) == [0.5, 0.5, 0.75, 0.75, 1, 1, 0.5, 0.5]
    twice = {"name": "warmup", "over": 2, "first": 0.5, "then": after}
    assert found(then=twice) == [0.25, 0.375, 0.5, 0.75, 1, 1, 0.5, 0.5]


@pytest.mark.parametrize("name", CASES)
def test_by_round_all_local_steps_of_a_round_have_the_gamma_of_the_round_and_by_step_each_has_its_own(name):
    rule = CASES[name][0]
    assert gammas(rule, 4 * LONG, k0=4) == [gamma for gamma in gammas(rule) for _ in range(4)]
    assert gammas(replace(rule, by="step"), LONG, k0=4) == gammas(rule, LONG, k0=1)


def test_cosine_stays_at_its_least_value_also_at_0_where_that_of_torch_rises_again():
    rule = steps.Cosine(a=0.1, least=0.02, over=10)
    assert gammas(rule, 30)[10:] == [0.02] * 20
    divided = [("fednova", "step"), ("scaffold", "step"), ("q-fedavg", "lr"), ("proxskip", "gamma"), ("k-gt", "gamma")]
    for name, key in divided:  # by γ, or by sums of it
        options = {key: {"name": "cosine", "over": 2}} | ({"p": 0.5} if name == "proxskip" else {})
        models = Run(build(name, options), graph="complete" if name == "k-gt" else None).rounds(4)
        np.testing.assert_allclose(models[1], models[3], rtol=1e-12, err_msg=name)


def test_a_warm_up_is_a_share_of_a_step_size_that_differs_between_clients_too():
    rule = steps.Warmup(over=2, first=0.5, then=steps.SqrtSamples(a=1.0))
    first = rule.gamma(0, 3, D)
    assert np.array_equal(first, 0.5 * steps.SqrtSamples(a=1.0).gamma(0, 3, D))
    assert np.array_equal(rule.gamma(6, 3, D), steps.SqrtSamples(a=1.0).gamma(0, 3, D))
