"""Rounds of networks as one would write them in torch without a framework, and with ``vmap`` in a few lines.

``Loop`` trains one client after the other: copy the model, shuffle, and for each mini-batch zero_grad, forward,
backward and step of the optimiser; then add to the mean. ``batched`` trains a group of FedAvg's clients in one pass.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

from benchmarks.speed.models import load

BATCH = 10
LR = 0.05
ADAM_LR = 0.001
MU = 0.1  # of FedProx
LAM = 1.0  # of FLAME, as the next
RHO = 0.05
Parts = list[tuple[Any, Any]]  # samples (d, *shape) and classes (d,) of each client
Batches = Callable[[int, int], Iterable[tuple[Any, Any]]]  # client and round -> its mini-batches


class Loop:
    """FedAvg; subclasses change what differs. ``server`` is the model, by name of the parameters."""

    lr = LR

    def __init__(self, module: Any, x: Any, parts: Parts, batches: Batches) -> None:
        self.module = module.to(x.device)
        self.parts, self.batches = parts, batches
        load(self.module, x)
        self.server = self.copy()
        self.rounds = 0

    def round(self, selected: Iterable[int]) -> None:
        """One round of the selected clients."""
        self.rounds += 1
        total: dict[str, Any] = {}
        count = 0
        for i in selected:
            self.train(i)
            count += 1
            for name, value in self.upload(i).items():
                total[name] = total[name] + value if name in total else value
        self.server = self.mean({name: value / count for name, value in total.items()})

    def train(self, i: int) -> None:
        """One epoch of mini-batches."""
        self.module.load_state_dict(self.origin(i))
        optimizer = self.optimizer()
        for X, y in self.batches(i, self.rounds):
            optimizer.zero_grad()
            loss = cross_entropy(self.module(X), y)
            loss.backward()
            self.correct(i)
            optimizer.step()

    def evaluate(self) -> tuple[float, list[Any], float]:
        """The mean over clients of their losses and gradients at the model, and the share of correct classes."""
        self.module.load_state_dict(self.server)
        self.module.zero_grad()
        value = 0.0
        correct = samples = 0
        for X, y in self.parts:
            scores = self.module(X)
            loss = cross_entropy(scores, y) / len(self.parts)
            loss.backward()
            value += loss.item()
            correct += int((scores.argmax(1) == y).sum())
            samples += len(y)
        return value, [p.grad for p in self.module.parameters()], correct / samples

    def copy(self) -> dict[str, Any]:
        return {name: p.detach().clone() for name, p in self.module.named_parameters()}

    def optimizer(self) -> Any:
        return torch.optim.SGD(self.module.parameters(), self.lr)

    def origin(self, i: int) -> dict[str, Any]:
        """Where a client begins."""
        return self.server

    def correct(self, i: int) -> None:
        """Add to the gradient what the method adds."""

    def upload(self, i: int) -> dict[str, Any]:
        return self.copy()

    def mean(self, total: dict[str, Any]) -> dict[str, Any]:
        """The server's model, given the mean of the uploads."""
        return total


class Momentum(Loop):
    """FedAvg with momentum in the local steps."""

    def optimizer(self) -> Any:
        return torch.optim.SGD(self.module.parameters(), self.lr, momentum=0.9)


class Adam(Loop):
    """FedAvg with Adam in the local steps."""

    lr = ADAM_LR

    def optimizer(self) -> Any:
        return torch.optim.Adam(self.module.parameters(), self.lr)


class FedProx(Loop):
    """Gradient steps on f_i(w) + (MU/2)‖w − x‖²."""

    def correct(self, i: int) -> None:
        for name, p in self.module.named_parameters():
            p.grad += MU * (p.detach() - self.server[name])


class Scaffold(Loop):
    """SCAFFOLD with all clients in every round."""

    def __init__(self, module: Any, x: Any, parts: Parts, batches: Batches) -> None:
        super().__init__(module, x, parts, batches)
        self.c = {name: torch.zeros_like(p) for name, p in self.server.items()}
        self.own = [self.c] * len(parts)

    def correct(self, i: int) -> None:
        for name, p in self.module.named_parameters():
            p.grad += self.c[name] - self.own[i][name]

    def upload(self, i: int) -> dict[str, Any]:
        """y − x, and the change of c_i under the names c.…"""
        own = self.own[i]
        model = self.copy()
        moved = self.lr * -(-len(self.parts[i][1]) // BATCH)
        self.own[i] = {name: own[name] - self.c[name] + (self.server[name] - y) / moved for name, y in model.items()}
        change = {f"c.{name}": self.own[i][name] - own[name] for name in own}
        return {name: y - self.server[name] for name, y in model.items()} | change

    def mean(self, total: dict[str, Any]) -> dict[str, Any]:
        self.c = {name: c + total[f"c.{name}"] for name, c in self.c.items()}
        return {name: x + total[name] for name, x in self.server.items()}


class Flame(Loop):
    """FLAME with all clients in every round."""

    def __init__(self, module: Any, x: Any, parts: Parts, batches: Batches) -> None:
        super().__init__(module, x, parts, batches)
        self.theta = [self.server] * len(parts)
        self.pi = [{name: torch.zeros_like(p) for name, p in self.server.items()}] * len(parts)

    def origin(self, i: int) -> dict[str, Any]:
        return self.theta[i]

    def correct(self, i: int) -> None:
        for name, p in self.module.named_parameters():
            p.grad += LAM * (p.detach() - self.server[name])

    def upload(self, i: int) -> dict[str, Any]:
        theta, before = self.copy(), self.pi[i]
        pull = LAM / len(self.parts)
        w = {name: (pull * theta[name] + RHO * x - before[name]) / (pull + RHO) for name, x in self.server.items()}
        pi = {name: before[name] + RHO * (w[name] - x) for name, x in self.server.items()}
        self.theta[i] = theta
        self.pi[i] = pi
        return {name: w[name] + pi[name] / RHO for name in w}


LOOPS: dict[str, type[Loop]] = {
    "fedavg": Loop,
    "momentum": Momentum,
    "adam": Adam,
    "fedprox": FedProx,
    "scaffold": Scaffold,
    "flame": Flame,
}


def sliced(parts: Parts) -> Batches:
    """Mini-batches as slices of a shuffled index."""

    def batches(i: int, _: int) -> Iterable[tuple[Any, Any]]:
        X, y = parts[i]
        return ((X[rows], y[rows]) for rows in torch.randperm(len(y), device=y.device).split(BATCH))

    return batches


def loaded(parts: Parts) -> Batches:
    """Mini-batches of torch's DataLoader."""
    loaders = [DataLoader(TensorDataset(X, y), BATCH, shuffle=True) for X, y in parts]
    return lambda i, _: loaders[i]


def batched(module: Any) -> Callable[[Any, Any, Any], Any]:
    """A round of FedAvg for a group of clients at once, as a function to be called: the mean of their models.

    Its arguments are the model by name of the parameters, samples (c, steps, BATCH, *shape) and classes (c, steps,
    BATCH) in the order of the steps.
    """

    def loss(P: dict[str, Any], A: Any, b: Any) -> Any:
        return cross_entropy(functional_call(module, P, (A,)), b)

    gradients = vmap(grad(loss))

    def round(x: dict[str, Any], A: Any, b: Any) -> dict[str, Any]:
        W = {name: value.expand(len(A), *value.shape).clone() for name, value in x.items()}
        for k in range(A.shape[1]):
            G = gradients(W, A[:, k], b[:, k])
            for name, value in W.items():
                value.sub_(G[name], alpha=LR)
        return {name: value.mean(0) for name, value in W.items()}

    return round


def shuffled(A: Any, b: Any) -> tuple[Any, Any]:
    """The whole mini-batches of clients in a new order: samples (c, d, *shape) as (c, steps, BATCH, *shape)."""
    rows = torch.stack([torch.randperm(A.shape[1], device=A.device) for _ in A])
    rows = rows[:, : A.shape[1] // BATCH * BATCH].unflatten(1, (-1, BATCH))
    each = torch.arange(len(A), device=A.device)[:, None, None]
    return A[each, rows], b[each, rows]
