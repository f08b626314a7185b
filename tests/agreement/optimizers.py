"""torch.optim beside the optimisers of clients and of the server."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from tests.agreement.packages import CLASSES, WHERE, A, Found, measured, ours
from tests.agreement.row import Row

OPTIMIZERS = [
    ("sgd", "SGD", {"name": "sgd"}, {}),
    (
        "momentum",
        "SGD with momentum",
        {"name": "momentum", "beta": 0.8, "weight_decay": 0.1},
        {"momentum": 0.8, "weight_decay": 0.1},
    ),
    ("nesterov", "SGD with nesterov", {"name": "momentum", "nesterov": True}, {"momentum": 0.9, "nesterov": True}),
    ("adam", "Adam", {"name": "adam"}, {}),
    ("adamw", "AdamW", {"name": "adamw"}, {}),
]
SERVERS = [
    ("momentum", "SGD with momentum", {"name": "momentum", "lr": 0.1, "beta": 0.8}, {"lr": 0.1, "momentum": 0.8}),
    (
        "adagrad",
        "Adagrad",
        {"name": "adagrad", "lr": 0.1, "beta1": 0.0, "tau": 0.01},
        {"lr": 0.1, "eps": 0.01, "initial_accumulator_value": 1e-4},
    ),
]


def torch_optimizer(optimizer: dict[str, object], theirs: str, options: dict[str, object]) -> tuple[Found, Found]:
    """FedAvg with one client is a training loop, whose optimiser starts anew in every round."""
    import torch

    rounds, steps, gamma = 6, 10, 0.05
    algorithm = {"name": "fedavg", "k0": steps, "step": {"name": "constant", "a": gamma}, "optimizer": optimizer}
    mine = ours("softmax", A, CLASSES, (60,), algorithm=algorithm, rounds=rounds, record={"models": 1})
    W, b = torch.zeros(3, 4, dtype=torch.float64), torch.zeros(3, dtype=torch.float64)
    parts = [W.requires_grad_(), b.requires_grad_()]
    samples, labels = torch.tensor(A), torch.tensor(CLASSES).long()
    models, values = [], []

    def loss() -> torch.Tensor:
        return torch.nn.functional.cross_entropy(samples @ W.T + b, labels)

    def note() -> None:
        models.append(torch.cat([part.detach().ravel() for part in parts]).numpy())
        values.append(loss().item())

    note()
    for _ in range(rounds):
        stepper = getattr(torch.optim, theirs.split()[0])(parts, lr=gamma, **options)
        for _ in range(steps):
            stepper.zero_grad()
            loss().backward()
            stepper.step()
        note()
    return Found((mine.models["x"],), mine.rounds["objective"]), Found((np.array(models),), np.array(values))


def server_optimizer(server: dict[str, object], theirs: str, options: dict[str, float]) -> tuple[Found, Found]:
    """One local step of all clients, weighted by sizes, is a gradient of all samples for the server's optimiser."""
    import torch

    rounds, gamma = 20, 1.0
    algorithm = {"name": "fedopt", "k0": 1, "step": {"name": "constant", "a": gamma}, "server": server}
    problem = {"name": "softmax", "bias": False}
    mine = ours(problem, A, CLASSES, algorithm=algorithm, rounds=rounds, record={"models": 1})
    W = torch.zeros(3, 4, dtype=torch.float64, requires_grad=True)
    stepper = getattr(torch.optim, theirs.split()[0])([W], **options)
    models, values = [], []
    for _ in range(rounds + 1):
        stepper.zero_grad()
        loss = torch.nn.functional.cross_entropy(torch.tensor(A) @ W.T, torch.tensor(CLASSES).long())
        loss.backward()
        models.append(W.detach().numpy().ravel().copy())
        values.append(loss.item())
        stepper.step()
    return Found((mine.models["x"],), mine.rounds["objective"]), Found((np.array(models),), np.array(values))


def rows(scratch: Path) -> Iterator[Row]:
    """``scratch`` stays empty: data are in memory."""
    loop = "6 rounds of 10 full-batch local steps, 1 client"
    for method, theirs, optimizer, options in OPTIMIZERS:
        beside = partial(torch_optimizer, optimizer, theirs, options)
        yield measured(f"fedavg, {method}", "torch", f"torch.optim.{theirs}: {loop}", beside)
    for method, theirs, server, options in SERVERS:
        what = f"torch.optim.{theirs}: 20 full-batch rounds, {WHERE}"
        yield measured(f"fedopt, {method}", "torch", what, partial(server_optimizer, server, theirs, options))
