"""The networks whose rounds are measured, their clients, and rounds of them in plain torch, also with ``vmap``.

The functions that make networks are what ``problem.module`` names. Inputs are images (k, channels, side, side) with ten
classes. Without PyTorch programs end here, with one sentence.
"""

import sys
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

try:
    import torch as torch  # for those who import it from here, after it was looked for
    from torch import nn
    from torch.func import functional_call, grad, vmap
    from torch.nn import functional as F
    from torch.nn.functional import cross_entropy
except ImportError:
    print("networks are trained by PyTorch, which is not installed: pip install mpifed[torch]")
    sys.exit()

CLASSES = 10
LR = 0.05
Parts = list[tuple[Any, Any]]  # samples (d, *shape) and classes (d,) of each client
Batches = Callable[[int, int], Iterable[tuple[Any, Any]]]  # client and round -> its mini-batches


class Case(NamedTuple):
    """A network and its clients; FedAvg trains ``clients`` of ``all`` with one epoch of mini-batches of ``batch``."""

    name: str
    make: Callable[[], Any]
    shape: tuple[int, int, int]
    clients: int
    all: int
    samples: int = 50
    hidden: int = 0  # of the problem ``mlp``, where that computes the same network
    batch: int = 10

    def with_batch(self, batch: int) -> "Case":
        """The same network with mini-batches of another size; clients have five of them."""
        return self._replace(batch=batch, samples=5 * batch)

    def tiny(self) -> "Case":
        """The same network on a few clients, which shows that everything runs."""
        return self._replace(clients=2, all=3 if self.clients < self.all else 2, samples=2 * self.batch)


def mlp() -> Any:
    """784–200–10: 159,010 parameters."""
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, CLASSES))


def lenet() -> Any:
    """LeNet-5 of Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, 1998, with ReLU and largest values: 61,706 parameters."""
    first = [nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2)]
    second = [nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    dense = [nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, CLASSES)]
    return nn.Sequential(*first, *second, *dense)


def cnn() -> Any:
    """conv32 – pool – conv64 – pool – 128 – 10 without padding, on 3 × 32 × 32: 315,722 parameters."""
    first = [nn.Conv2d(3, 32, 3), nn.ReLU(), nn.MaxPool2d(2)]
    second = [nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten()]
    return nn.Sequential(*first, *second, nn.Linear(2304, 128), nn.ReLU(), nn.Linear(128, CLASSES))


class Residual(nn.Module):  # type: ignore[misc]
    """Two convolutions with group norm beside an identity, or beside a 1 × 1 convolution where the shape changes."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(before, after, 3, stride, 1, bias=False)
        self.first_norm = nn.GroupNorm(8, after)
        self.second = nn.Conv2d(after, after, 3, 1, 1, bias=False)
        self.second_norm = nn.GroupNorm(8, after)
        self.beside = nn.Identity() if before == after else nn.Conv2d(before, after, 1, stride, bias=False)

    def forward(self, samples: Any) -> Any:
        inner = F.relu(self.first_norm(self.first(samples)))
        return F.relu(self.second_norm(self.second(inner)) + self.beside(samples))


def resnet8() -> Any:
    """ResNet-8 of K. He, X. Zhang, S. Ren, J. Sun, 2016, on 3 × 32 × 32, with group norm: 77,850 parameters."""
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1, bias=False),
        nn.GroupNorm(8, 16),
        nn.ReLU(),
        Residual(16, 16, 1),
        Residual(16, 32, 2),
        Residual(32, 64, 2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(64, CLASSES),
    )


CASES = {
    case.name: case
    for case in (
        Case("MLP", mlp, (1, 28, 28), 50, 50, hidden=200),
        Case("LeNet", lenet, (1, 28, 28), 20, 20),
        Case("ResNet-8", resnet8, (3, 32, 32), 10, 10),
        Case("CNN", cnn, (3, 32, 32), 50, 1000),
    )
}


def parameters(module: Any) -> Any:
    """All parameters of a module as one vector (n,), in the order of x."""
    return torch.cat([p.detach().reshape(-1) for p in module.parameters()])


def load(module: Any, x: Any) -> None:
    """Copy x (n,) into the parameters of a module."""
    with torch.no_grad():
        parts = x.split([p.numel() for p in module.parameters()])
        for p, part in zip(module.parameters(), parts, strict=True):
            p.copy_(part.view_as(p))


class Loop:
    """FedAvg as one would write it in torch without a framework; ``server`` is the model, by name of the parameters.

    One client after the other: copy the model, shuffle, and for each mini-batch zero_grad, forward, backward and step
    of the optimiser; then add to the mean. ``batches`` gives those of a client and round.
    """

    lr = LR

    def __init__(self, module: Any, x: Any, batches: Batches) -> None:
        self.module = module.to(x.device)
        self.batches = batches
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
            for name, value in self.copy().items():
                total[name] = total[name] + value if name in total else value
        self.server = {name: value / count for name, value in total.items()}

    def train(self, i: int) -> None:
        """One epoch of mini-batches."""
        self.module.load_state_dict(self.server)
        optimizer = torch.optim.SGD(self.module.parameters(), self.lr)
        for X, y in self.batches(i, self.rounds):
            optimizer.zero_grad()
            loss = cross_entropy(self.module(X), y)
            loss.backward()
            optimizer.step()

    def copy(self) -> dict[str, Any]:
        return {name: p.detach().clone() for name, p in self.module.named_parameters()}


def sliced(parts: Parts, batch: int) -> Batches:
    """Mini-batches as slices of a shuffled index."""

    def batches(i: int, _: int) -> Iterable[tuple[Any, Any]]:
        X, y = parts[i]
        return ((X[rows], y[rows]) for rows in torch.randperm(len(y), device=y.device).split(batch))

    return batches


def vmap_rounds(module: Any, x: dict[str, Any], parts: Parts, group: int, batch: int) -> Callable[[], None]:
    """Return a function that trains all clients for a round, ``group`` of them in a pass of ``torch.func.vmap``."""
    together = batched(module)
    A, b = (torch.stack(own) for own in zip(*parts, strict=True))

    def round() -> None:
        for own in torch.arange(len(A)).split(group):
            rows = torch.stack([torch.randperm(A.shape[1], device=A.device) for _ in own])
            rows = rows[:, : A.shape[1] // batch * batch].unflatten(1, (-1, batch))
            each = own.to(A.device)[:, None, None]
            together(x, A[each, rows], b[each, rows])

    return round


def batched(module: Any) -> Callable[[Any, Any, Any], Any]:
    """Return a round of FedAvg for a group of clients at once: (model, samples, classes) -> the mean of their models.

    The model is by name of the parameters; samples (c, steps, batch, *shape) and classes (c, steps, batch).
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
