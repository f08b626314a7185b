"""The programs that measure networks run at tiny sizes, compare models before they time, and say what is not there."""

import math
import re

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not there: pip install mpifed[torch]")

from benchmarks.speed import gpu_networks, gpu_turns, network_runs, network_turns, networks, plain_networks  # noqa: E402
from benchmarks.speed.models import CASES, SMALL, load, parameters, unfolded  # noqa: E402
from benchmarks.speed.network_turns import Measured, prepare  # noqa: E402

pytestmark = pytest.mark.torch
TINY = ["--tiny", "--repeat", "1", "--rounds", "2"]


@pytest.mark.parametrize(("name", "n"), [("MLP", 159_010), ("LeNet", 61_706), ("ResNet-8", 77_850), ("CNN", 315_722)])
def test_the_networks_have_as_many_parameters_as_they_say(name, n):
    case = CASES[name]
    assert len(parameters(case.make())) == n
    assert f"{n:,} parameters" in case.make.__doc__


def test_convolutions_as_products_of_matrices_give_the_same_scores():
    for case in (SMALL, CASES["LeNet"], CASES["ResNet-8"]):
        module, samples = case.make(), torch.randn(3, *case.shape)
        scores = module(samples).detach()
        assert torch.allclose(unfolded(module)(samples), scores, atol=1e-5)


def test_clients_in_one_pass_end_where_they_end_one_after_the_other():
    x, A, b = parameters(SMALL.make()), torch.randn(3, 20, *SMALL.shape), torch.randint(10, (3, 20))
    steps = [[(X[k : k + 10], y[k : k + 10]) for k in (0, 10)] for X, y in zip(A, b, strict=True)]
    loop = plain_networks.Loop(SMALL.make(), x, list(zip(A, b, strict=True)), lambda i, _: steps[i])
    begin = loop.server
    loop.round(range(3))
    found = plain_networks.batched(SMALL.make())(begin, A.unflatten(1, (2, 10)), b.unflatten(1, (2, 10)))
    for name, value in loop.server.items():
        assert torch.allclose(found[name], value, atol=1e-6)
        assert not torch.allclose(found[name], begin[name], atol=1e-6)


def test_mini_batches_have_every_sample_once_and_a_new_order_each_time():
    parts = [(torch.arange(20.0)[:, None], torch.arange(20))]
    for batches in (plain_networks.sliced(parts), plain_networks.loaded(parts)):
        first, second = ([y for _, y in batches(0, round)] for round in (1, 2))
        assert [len(y) for y in first] == [10, 10]
        assert torch.cat(first).sort().values.tolist() == list(range(20))
        assert not torch.equal(torch.cat(first), torch.cat(second))
    A, b = (torch.stack([part[k]] * 2) for part in parts for k in range(2))
    X, y = plain_networks.shuffled(A, b)
    assert X.shape == (2, 2, 10, 1)
    assert torch.equal(X[..., 0], y.float())
    assert all(own.flatten().sort().values.tolist() == list(range(20)) for own in y)


@pytest.mark.parametrize("method", networks.METHODS)
def test_the_loop_does_what_the_method_does(method):
    turn = prepare(Measured(CASES["MLP"].tiny(), "mlp", method, 2))()
    assert turn.deviation < 1e-12
    assert math.isnan(turn.vmap) == (method != "fedavg")
    assert min(turn.ours, turn.loop, turn.ours_evaluating, turn.loop_evaluating) > 0


def test_another_step_size_is_another_model_and_nothing_is_timed(monkeypatch):
    monkeypatch.setattr(plain_networks.Loop, "lr", 0.9 * plain_networks.LR)
    with pytest.raises(SystemExit, match=r"MLP, fedavg: ours and the loop end at different models, [\d.e-]+ apart"):
        prepare(Measured(CASES["MLP"].tiny(), "torch", "fedavg", 2))
    monkeypatch.setattr(network_runs, "CLOSEST", 0.0)
    with pytest.raises(SystemExit, match="small CNN, fedavg: ours and the loop end at different models"):
        gpu_turns.rounds(SMALL, gpu_turns.Device("cpu"), 1, [])


def test_ratios_are_those_of_the_best():
    turns = [network_turns.Turn(2, 1, 4, 1, 8, 4, 0), network_turns.Turn(3, 1, 2, 1, 4, 8, 0)]
    assert networks.ratios(turns) == (1.0, 0.5, 0.5, 1.0)


@pytest.mark.slow
def test_a_network_has_a_line_for_each_problem_and_the_worse_ratio_is_quoted(printed):
    head, *lines = printed("networks", *TINY, "--cases", "MLP", "--busy", "--loader")
    assert re.sub(r"\(.*?\)|ms", "", head).split()[-5:] == ["evaluating", "late", "alone", "busy", "quoted"]
    assert [line.split()[:3] for line in lines] == [
        ["MLP", "torch", "fedavg"],
        ["MLP", "mlp", "fedavg"],
    ]
    for line in lines:
        alone, busy, quoted = map(float, line.split()[-3:])
        assert quoted == max(alone, busy) > 0


@pytest.mark.slow
def test_what_a_gpu_would_be_measured_for_runs_on_the_cpu(printed):
    table = printed("gpu_networks", *TINY, "--device", "cpu")
    cells = [re.split(" {2,}", line.strip()) for line in table if line]
    cells = [re.split(" {2,}", line.strip()) for line in table if line]
    names = [name for name, *_ in cells]
    rounds = ["mpifed", "plain loop", "vmap", "products, torch.compile (eager)"]
    assert names[2:6] == rounds
    assert all(float(ms.split()[0]) > 0 for _, ms, _ in cells[2:6])
    start = {"the whole command", "import mpifed", "import torch", "first array", "first step", "second step"}
    assert set(gpu_networks.METHODS) | start | {"samples", "memory", "device", "host"} <= set(names)


def test_without_a_gpu_or_without_pytorch_it_is_one_sentence(printed, monkeypatch):
    if not torch.cuda.is_available():
        assert printed("gpu_networks") == [gpu_networks.NO_GPU]
    for name in ("networks", "gpu_networks", "peers.__main__"):
        module = __import__(f"benchmarks.speed.{name}", fromlist=["main"])
        monkeypatch.setattr(module, "find_spec", lambda _: None)
        assert printed(name) == [networks.MISSING]


def test_the_loop_evaluates_the_mean_of_the_clients():
    x, A, b = parameters(SMALL.make()), torch.randn(2, 6, *SMALL.shape), torch.randint(10, (2, 6))
    loop = plain_networks.Loop(SMALL.make(), x, list(zip(A, b, strict=True)), lambda i, _: [])
    value, gradient, share = loop.evaluate()
    module = SMALL.make()
    load(module, x)
    scores = module(A.flatten(0, 1))
    whole = torch.nn.functional.cross_entropy(scores, b.flatten())
    whole.backward()
    assert value == pytest.approx(whole.item(), rel=1e-5)
    assert share == pytest.approx((scores.argmax(1) == b.flatten()).float().mean().item())
    for found, p in zip(gradient, module.parameters(), strict=True):
        assert np.allclose(found, p.grad, atol=1e-6)
