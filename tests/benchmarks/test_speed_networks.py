"""The programs that measure networks compare models before they time, and the networks are those that they name."""

import json

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not there: pip install mpifed[torch]")

from benchmarks.speed import gpu_networks, models, networks, simulators  # noqa: E402
from benchmarks.speed.models import CASES, SMALL, Loop, parameters, unfolded  # noqa: E402

pytestmark = pytest.mark.torch


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
    loop = Loop(SMALL.make(), x, list(zip(A, b, strict=True)), lambda i, _: steps[i])
    begin = loop.server
    loop.round(range(3))
    found = models.batched(SMALL.make())(begin, A.unflatten(1, (2, 10)), b.unflatten(1, (2, 10)))
    for name, value in loop.server.items():
        assert torch.allclose(found[name], value, atol=1e-6)
        assert not torch.allclose(found[name], begin[name], atol=1e-6)


def test_mini_batches_have_every_sample_once_and_a_new_order_each_time():
    parts = [(torch.arange(20.0)[:, None], torch.arange(20))]
    first, second = ([y for _, y in models.sliced(parts)(0, round)] for round in (1, 2))
    assert [len(y) for y in first] == [10, 10]
    assert torch.cat(first).sort().values.tolist() == list(range(20))
    assert not torch.equal(torch.cat(first), torch.cat(second))
    X, y = models.shuffled(*models.stacked(parts * 2))
    assert X.shape == (2, 2, 10, 1)
    assert torch.equal(X[..., 0], y.float())
    assert all(own.flatten().sort().values.tolist() == list(range(20)) for own in y)


@pytest.mark.slow
def test_ours_and_the_loop_end_at_the_same_model_or_nothing_is_timed(monkeypatch):
    task = networks.Task(CASES["MLP"].tiny(), 3, "mlp")
    turn = networks.prepare(task)()
    assert turn.deviation < 1e-12
    assert min(turn[:-1]) > 0
    monkeypatch.setattr(Loop, "lr", 0.9 * models.LR)
    with pytest.raises(SystemExit, match=r"MLP: ours and the loop end at different models, [\d.e-]+ apart"):
        networks.prepare(task)
    with pytest.raises(SystemExit, match="small CNN: ours and the loop end at different models"):
        gpu_networks.jobs(networks.Task(SMALL, 2))


def test_ratios_are_those_of_the_best_and_the_worse_of_alone_and_busy_is_quoted():
    turns = [networks.Turn(2, 1, 4, 1, 1e-16), networks.Turn(3, 1, 2, 1, 1e-16)]
    assert networks.cells([turns])[3:] == [0.5, 0.5, 1.0]  # vmap, late, alone
    assert networks.cells([turns, turns[:1], turns[1:]])[5:] == [1.0, 1.5, 1.5]


def test_a_simulator_is_asked_with_a_file_and_answers_in_json(tmp_path, capsys):
    path = tmp_path / "clients.npz"
    np.savez(path, X=np.zeros((2, 3, 1, 4, 4)), y=np.zeros((2, 3), int), x=np.zeros(5), clients=2, batch=10, lr=0.05)
    given = simulators.read(str(path), "MLP", "3", "cuda")
    assert (given.clients, given.batch, given.lr, given.network, given.rounds) == (2, 10, 0.05, "MLP", 3)
    marks = simulators.Marks()
    for _ in range(3):
        marks.mark()
    marks.tell(0.5)
    told = json.loads(capsys.readouterr().out)
    assert (len(told["cpu"]), len(told["wall"]), told["f"]) == (2, 2, 0.5)


@pytest.mark.parametrize("name", ["MLP", "LeNet", "CNN"])
def test_the_networks_of_fedjax_are_those_of_pytorch(name):
    pytest.importorskip("jax")
    module, samples = CASES[name].make(), torch.randn(2, *CASES[name].shape)
    weights = simulators.parameters(name, parameters(module).numpy())
    found = simulators.scores(name, weights, samples.permute(0, 2, 3, 1).numpy())
    assert np.allclose(found, module(samples).detach(), atol=1e-5)
