"""A network on a hundred clients beside a plain loop in PyTorch, with mpifed's mini-batches."""

import copy
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from mpifed.core.streams import stream
from tests.agreement.packages import Found, measured
from tests.agreement.row import Row
from tests.agreement.stored import replayed

M, FEATURES, HIDDEN, CLASSES, ROUNDS, RATE, SIZE, PASSES = 100, 6, 8, 3, 8, 0.2, 4, 2
rng = np.random.default_rng(5)
SIZES = rng.integers(6, 15, M)
X = rng.standard_normal((SIZES.sum(), FEATURES))
Y = (np.argmax(X[:, :CLASSES] + rng.gumbel(size=(len(X), CLASSES)), axis=1)).astype(float)
TEN = np.array([np.sort(rng.permutation(M)[:10]) for _ in range(ROUNDS)])
START = rng.uniform(-0.4, 0.4, (FEATURES + 1) * HIDDEN + (HIDDEN + 1) * CLASSES)
HEAD = (FEATURES + 1) * HIDDEN  # from here on numbers are of the head
LOCAL = {"batch_size": SIZE, "epochs": PASSES, "step": {"name": "constant", "a": RATE}}
# Method, options, the optimiser of PyTorch and its options, weight of ‖w − x‖²/2.
TRAINED: list[tuple[str, dict[str, Any], str, dict[str, Any], float]] = [
    ("fedavg", {"name": "fedavg"}, "SGD", {}, 0.0),
    ("fedavg, momentum", {"name": "fedavg", "optimizer": {"name": "momentum"}}, "SGD", {"momentum": 0.9}, 0.0),
    ("fedavg, adam", {"name": "fedavg", "optimizer": {"name": "adam"}}, "Adam", {}, 0.0),
    ("fedprox", {"name": "fedprox", "mu": 0.5, "inner": 1}, "SGD", {}, 0.5),
]


def data(**more: Any) -> dict[str, Any]:
    return {"X": X, "y": Y, "sizes": SIZES, "x0": START, "rounds": ROUNDS} | more


class Loop:
    """The network in PyTorch, the samples of clients, and what both methods do with them."""

    def __init__(self) -> None:
        import torch

        self.torch = torch
        torch.set_num_threads(1)  # more are slower where layers are this small
        layers = [torch.nn.Linear(FEATURES, HIDDEN), torch.nn.ReLU(), torch.nn.Linear(HIDDEN, CLASSES)]
        self.net = torch.nn.Sequential(*layers).double()
        ends = np.cumsum(SIZES)[:-1]
        self.samples = [
            (torch.tensor(a), torch.tensor(b).long()) for a, b in zip(np.split(X, ends), np.split(Y, ends), strict=True)
        ]

    def network(self, x: np.ndarray) -> Any:
        net = copy.deepcopy(self.net)
        self.torch.nn.utils.vector_to_parameters(self.torch.tensor(x), net.parameters())
        return net

    def flat(self, net: Any) -> np.ndarray:
        return self.torch.nn.utils.parameters_to_vector(net.parameters()).detach().numpy()

    def loss(self, net: Any, i: int, rows: Any = slice(None)) -> Any:
        a, b = self.samples[i]
        return self.torch.nn.functional.cross_entropy(net(a[rows]), b[rows])

    def value(self, models: np.ndarray) -> float:
        """(1/m) Σ f_i, of the rows of ``models``."""
        return float(np.mean([self.loss(self.network(x), i).item() for i, x in enumerate(models)]))

    def take(self, net: Any, i: int, rows: Any, stepper: Any, pull: Any = None) -> None:
        stepper.zero_grad()
        loss = self.loss(net, i, rows)
        (loss if pull is None else loss + pull(net)).backward()
        stepper.step()

    def train(
        self, x: np.ndarray, i: int, round: int, optimiser: str, options: dict[str, Any], mu: float
    ) -> np.ndarray:
        net, sent, draws = self.network(x), self.network(x), stream(0, "clients", i, round, 0)
        stepper = getattr(self.torch.optim, optimiser)(net.parameters(), lr=RATE, **options)

        def pull(net: Any) -> Any:
            both = zip(net.parameters(), sent.parameters(), strict=True)
            return mu / 2 * sum(((w - v.detach()) ** 2).sum() for w, v in both)

        for _ in range(PASSES):
            order = draws.permuted(np.arange(SIZES[i])[None], axis=1)[0]
            for first in range(0, len(order), SIZE):
                self.take(net, i, order[first : first + SIZE], stepper, pull if mu else None)
        return self.flat(net)


def trained(
    options: dict[str, Any], optimiser: str, more: dict[str, Any], mu: float, scratch: Path
) -> tuple[Found, Found]:
    """Ten of the clients train in each round, and their models are averaged."""
    problem = {"name": "mlp", "hidden": [HIDDEN]}
    mine = replayed(data(clients=TEN), scratch, algorithm=options | LOCAL, problem=problem)
    loop, models = Loop(), [START]
    for round, chosen in enumerate(TEN, 1):
        models.append(np.mean([loop.train(models[-1], i, round, optimiser, more, mu) for i in chosen], axis=0))
    values = [loop.value(np.tile(x, (M, 1))) for x in models]
    return Found((mine.models["x"],), mine.rounds["objective"]), Found((np.array(models),), values)


def personal(heads_first: bool, scratch: Path) -> tuple[Found, Found]:
    """Heads stay with their clients: FedRep trains them first and then the body, FedPer both at once."""
    steps = [(True, 5), (False, 2)] if heads_first else [(None, 3)]
    options = {"name": "fedrep", "head_steps": 5, "k0": 2} if heads_first else {"name": "fedavg", "k0": 3}
    mine = replayed(
        data(),
        scratch,
        algorithm=options | {"batch_size": 0, "step": {"name": "constant", "a": RATE}},
        problem={"name": "mlp", "hidden": [HIDDEN]},
        personal=["head.*"],
        selection="all",
        record={"models": 1, "personal": True},
    )
    loop, rows = Loop(), np.tile(START, (M, 1))
    bodies, values = [START[:HEAD]], [loop.value(rows)]
    for _ in range(ROUNDS):
        for i in range(M):
            net = loop.network(rows[i])
            for head, count in steps:
                parts = list(net.parameters())
                stepper = loop.torch.optim.SGD(parts if head is None else parts[2:] if head else parts[:2], lr=RATE)
                for _ in range(count):
                    loop.take(net, i, slice(None), stepper)
            rows[i] = loop.flat(net)
        rows[:, :HEAD] = rows[:, :HEAD].mean(axis=0)
        bodies.append(rows[0, :HEAD].copy())
        values.append(loop.value(rows))
    found = Found((mine.models["x"][:, :HEAD], mine.personal), mine.rounds["objective"])
    return found, Found((np.array(bodies), rows), values)


def rows(scratch: Path) -> Iterator[Row]:
    what = f"a network of {len(START)} weights, {ROUNDS} rounds"
    for method, options, optimiser, more, mu in TRAINED:
        batches = f"{PASSES} epochs of mini-batches of {SIZE}, torch.optim.{optimiser}"
        beside = partial(trained, options, optimiser, more, mu, scratch)
        yield measured(method, "torch", f"{what}, 10 of 100 clients replayed, {batches}", beside)
    for method, heads_first in (("fedrep", True), ("fedavg, personal heads", False)):
        compared = f"{what}, 100 clients, full batches, torch.optim.SGD; heads of clients at the end too"
        yield measured(method, "torch", compared, partial(personal, heads_first, scratch))
