"""The networks whose rounds are measured, as functions that ``problem.module`` names, and the clients they train on.

Inputs are images (k, channels, side, side) with ten classes. ``unfolded`` writes convolutions as matrix products.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional as F

CLASSES = 10


class Case(NamedTuple):
    """A network and its clients; FedAvg trains ``clients`` of ``all`` with one epoch of mini-batches of 10."""

    name: str
    make: Callable[[], Any]
    shape: tuple[int, int, int]
    clients: int
    all: int
    samples: int = 50
    hidden: int = 0  # of the problem ``mlp``, where that computes the same network

    def tiny(self) -> "Case":
        """The same network on a few clients, which shows that everything runs."""
        return self._replace(clients=2, all=3 if self.clients < self.all else 2, samples=20)


def mlp() -> Any:
    """784–200–10: 159,010 parameters."""
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 200), nn.ReLU(), nn.Linear(200, CLASSES))


def lenet() -> Any:
    """LeNet-5 of Y. LeCun, L. Bottou, Y. Bengio, P. Haffner, 1998, with ReLU and largest values: 61,706 parameters."""
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(400, 120),
        nn.ReLU(),
        nn.Linear(120, 84),
        nn.ReLU(),
        nn.Linear(84, CLASSES),
    )


def cnn() -> Any:
    """conv32 – pool – conv64 – pool – 128 – 10 without padding, on 3 × 32 × 32: 315,722 parameters."""
    return nn.Sequential(
        nn.Conv2d(3, 32, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * 6 * 6, 128),
        nn.ReLU(),
        nn.Linear(128, CLASSES),
    )


def small_cnn() -> Any:
    """The same layers with 4, 8 and 16 channels: for a look at whether everything runs."""
    return nn.Sequential(
        nn.Conv2d(3, 4, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 8, 3),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(8 * 2 * 2, 16),
        nn.ReLU(),
        nn.Linear(16, CLASSES),
    )


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


class Products(nn.Conv2d):  # type: ignore[misc]
    """A convolution as a product of its weights with the pixels under them; parameters are those of Conv2d."""

    def forward(self, samples: Any) -> Any:
        found = F.unfold(samples, self.kernel_size, padding=self.padding, stride=self.stride)
        bias = 0 if self.bias is None else self.bias[:, None]
        sides = [
            (side + 2 * pad - kernel) // stride + 1
            for side, pad, kernel, stride in zip(
                samples.shape[-2:], self.padding, self.kernel_size, self.stride, strict=True
            )
        ]
        return (self.weight.flatten(1) @ found + bias).unflatten(-1, sides)


def unfolded(module: Any) -> Any:
    """The module with its convolutions as matrix products, which can be batched over clients, in place."""
    for part in module.modules():
        if type(part) is nn.Conv2d:
            part.__class__ = Products
    return module


CASES = {
    case.name: case
    for case in (
        Case("MLP", mlp, (1, 28, 28), 50, 50, hidden=200),
        Case("LeNet", lenet, (1, 28, 28), 20, 20),
        Case("ResNet-8", resnet8, (3, 32, 32), 10, 10),
        Case("CNN", cnn, (3, 32, 32), 50, 1000),
    )
}
SMALL = Case("small CNN", small_cnn, (3, 16, 16), 2, 3, 20)


def parameters(module: Any) -> Any:
    """All parameters of a module as one vector (n,), in the order of x."""
    return torch.cat([p.detach().reshape(-1) for p in module.parameters()])


def load(module: Any, x: Any) -> None:
    """Copy x (n,) into the parameters of a module."""
    with torch.no_grad():
        parts = x.split([p.numel() for p in module.parameters()])
        for p, part in zip(module.parameters(), parts, strict=True):
            p.copy_(part.view_as(p))
