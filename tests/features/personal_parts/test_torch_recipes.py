"""FedPer, FedBN, LG-FedAvg and FedRep as loops that a user of PyTorch would write, beside the settings of mpifed."""

import numpy as np
import pytest

import mpifed
from tests.helpers.commands import mpifed as command
from tests.helpers.torch_cases import C, M, N, at, dataset, network, samples, tables, tensors, torch

pytestmark = pytest.mark.torch
nn = torch.nn
ROUNDS, LR = 4, 0.3


class Net(nn.Module):
    """A body of one layer, with a normalisation of the mini-batch, and a head."""

    def __init__(self):
        super().__init__()
        self.body = nn.Linear(N, 5)
        self.bn = nn.BatchNorm1d(5)
        self.head = nn.Linear(5, C)

    def forward(self, x):
        return self.head(torch.relu(self.bn(self.body(x))))


def descend(module, A, b, steps, moves):
    """Gradient steps of the parameters that ``moves`` names, on the mean cross-entropy."""
    for _ in range(steps):
        module.zero_grad()
        nn.functional.cross_entropy(module(A), b).backward()
        with torch.no_grad():
            for name, p in module.named_parameters():
                if moves(name):
                    p -= LR * p.grad


def federated(start, selected, stays, train):
    """The models of all clients after each round; ``train(module, A, b)`` is a client's local work."""
    modules = [at(Net(), start).train() for _ in range(M)]
    shared = {name: p.detach().clone() for name, p in modules[0].named_parameters() if not stays(name)}
    yield modules
    for clients in selected:
        for i in clients:
            with torch.no_grad():
                for name, p in modules[i].named_parameters():
                    p.copy_(p if stays(name) else shared[name])
            train(modules[i], *tensors(*samples(dataset(), i)))
        shared = {name: sum(dict(modules[i].named_parameters())[name].detach() for i in clients) for name in shared}
        shared = {name: total / len(clients) for name, total in shared.items()}
        with torch.no_grad():
            for module in modules:
                for name, p in module.named_parameters():
                    p.copy_(p if stays(name) else shared[name])
        yield modules


def is_head(name):
    return name.startswith("head.")


def together(module, A, b):
    descend(module, A, b, 3, lambda name: True)


def head_first(module, A, b):
    descend(module, A, b, 4, is_head)
    descend(module, A, b, 2, lambda name: not is_head(name))


PLAIN = {"name": "fedavg", "k0": 3}
RECIPES = {
    "FedPer": (["head.*"], PLAIN, is_head, together),
    "FedBN": (["bn.*"], PLAIN, lambda name: name.startswith("bn."), together),
    "LG-FedAvg": (["body.*", "bn.*"], PLAIN, lambda name: not is_head(name), together),
    "FedRep": (["head.*"], {"name": "fedrep", "head_steps": 4, "k0": 2}, is_head, head_first),
}


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_a_loop_of_pytorch_to_1e_12(name, tmp_path):
    """Models, f, ‖∇F‖² by all parameters, and test accuracies, with three of four clients a round."""
    personal, algorithm, stays, train = RECIPES[name]
    found = mpifed.run(
        problem={"name": "torch", "module": f"{__name__}:Net"},
        data=tables(tmp_path),
        algorithm=algorithm | {"step": {"name": "constant", "a": LR}},
        personal=personal,
        selection={"count": 3},
        record={"personal": True},
        rounds=ROUNDS,
        stop={"gradient": 0.0, "diverged": 0},
    )
    start = network(f"{__name__}:Net").initial(dataset(), 0)
    selected = [found.selected(t) for t in range(1, ROUNDS + 1)]
    for t, modules in enumerate(federated(start, selected, stays, train)):
        losses, of_shared, of_own = [], [], 0.0
        for i, module in enumerate(modules):
            module.zero_grad()
            loss = nn.functional.cross_entropy(
                module(tensors(*samples(dataset(), i))[0]), tensors(*samples(dataset(), i))[1]
            )
            loss.backward()
            losses.append(loss.item())
            of_own += sum(float((p.grad**2).sum()) for n, p in module.named_parameters() if stays(n))
            of_shared.append(torch.cat([p.grad.ravel() for n, p in module.named_parameters() if not stays(n)]))
        norm = float((sum(of_shared) / M).square().sum()) + of_own / M**2
        assert found.rounds["objective"][t] == pytest.approx(np.mean(losses), rel=1e-12)
        assert found.rounds["grad_norm_sq"][t] == pytest.approx(norm, rel=1e-10)
    last = [torch.cat([p.detach().ravel() for p in module.parameters()]).numpy() for module in modules]
    assert np.abs(found.personal - last).max() < 1e-12
    assert np.abs(last[0] - last[1]).max() > 0.01


def test_data_info_lists_the_names_that_personal_takes(tmp_path):
    path = tables(tmp_path)["path"]
    done = command("data", "info", path, f"problem={{name='torch',module='{__name__}:Net'}}")
    assert (
        "parameters: body.weight (35), body.bias (5), bn.weight (5), bn.bias (5), head.weight (15), head.bias (3)"
        in done.out
    )
