"""The rounds of ``benchmarks.speed.peers`` by other simulators, in the environment of each, without mpifed.

    python -m benchmarks.speed.simulators pfl|fedjax FILE.npz NETWORK ROUNDS DEVICE

The file has samples ``X`` (m, d, channels, side, side), classes ``y`` (m, d), the first model ``x`` (n,), how many
clients a round takes, the size of mini-batches and the step size. Printed is a line of JSON: CPU and wall seconds of
each round after the first, and the mean cross-entropy of all samples at the end.

pfl      F. Granqvist et al., "pfl-research: simulation framework for accelerating research in private federated
         learning", arXiv:2404.06430 (2024); needs PyTorch. Its simulated backend trains one user after the other;
         samples are tensors on the device from the start, and are not shuffled, which pfl leaves to the data set
fedjax   J. H. Ro, A. T. Suresh, K. Wu, "FedJAX: federated learning simulation with JAX", arXiv:2108.02117 (2021).
         Clients are trained one after the other by a jitted function. Images have their channels last, as JAX computes
         fastest on a CPU; the weights are those of the networks of ``models``
"""

import json
import math
import os
import sys
import time
from typing import Any, NamedTuple

import numpy as np

# (kind, numbers): convolutions have channels in, out, kernel, padding; dense layers in and out
LAYERS: dict[str, list[tuple[Any, ...]]] = {
    "MLP": [("flat",), ("dense", 784, 200), ("relu",), ("dense", 200, 10)],
    "LeNet": [
        *(("conv", 1, 6, 5, 2), ("relu",), ("pool",), ("conv", 6, 16, 5, 0), ("relu",), ("pool",), ("flat",)),
        *(("dense", 400, 120), ("relu",), ("dense", 120, 84), ("relu",), ("dense", 84, 10)),
    ],
    "CNN": [
        *(("conv", 3, 32, 3, 0), ("relu",), ("pool",), ("conv", 32, 64, 3, 0), ("relu",), ("pool",), ("flat",)),
        *(("dense", 2304, 128), ("relu",), ("dense", 128, 10)),
    ],
}


class Task(NamedTuple):
    """What a simulator is asked for."""

    X: Any
    y: Any
    x: Any
    clients: int
    batch: int
    lr: float
    network: str
    rounds: int
    device: str


def read(file: str, network: str, rounds: str, device: str) -> Task:
    """The task on the command line."""
    with np.load(file) as found:
        X, y, x = (found[name] for name in ("X", "y", "x"))
        numbers = (int(found["clients"]), int(found["batch"]))
        lr = float(found["lr"])
    return Task(X, y, x, *numbers, lr, network, int(rounds), device)


class Marks:
    """The times at which rounds end."""

    def __init__(self) -> None:
        self.cpu: list[float] = []
        self.wall: list[float] = []

    def mark(self) -> None:
        self.cpu.append(time.process_time())
        self.wall.append(time.perf_counter())

    def tell(self, objective: float) -> None:
        """Print what was measured; the first round is a warm-up."""
        print(json.dumps({"cpu": np.diff(self.cpu).tolist(), "wall": np.diff(self.wall).tolist(), "f": objective}))


def pfl(given: Task) -> None:
    """Train by pfl-research."""
    import torch
    from pfl.aggregate.simulate import SimulatedBackend
    from pfl.algorithm.base import NNAlgorithmParams
    from pfl.algorithm.federated_averaging import FederatedAveraging
    from pfl.data.dataset import Dataset
    from pfl.data.federated_dataset import FederatedDataset
    from pfl.data.sampling import get_user_sampler
    from pfl.hyperparam import NNTrainHyperParams
    from pfl.internal.ops import pytorch_ops
    from pfl.model.pytorch import PyTorchModel
    from torch.nn.functional import cross_entropy

    from benchmarks.speed.models import CASES, load

    torch.set_num_threads(1)
    pytorch_ops.get_default_device()
    device = torch.device(given.device)
    network = CASES[given.network].make().to(device)
    load(network, torch.from_numpy(given.x).to(device))
    # the two methods that pfl asks a module for
    network.loss = lambda X, y: cross_entropy(network(X), y)
    network.metrics = lambda X, y: {}
    X, y = (torch.from_numpy(array).to(device) for array in (given.X, given.y))
    model = PyTorchModel(network, torch.optim.SGD, torch.optim.SGD(network.parameters(), 1.0))
    sampler = get_user_sampler("minimize_reuse", list(range(len(X))))
    data = FederatedDataset(lambda i: Dataset([X[i], y[i]], user_id=str(i)), sampler)
    rounds = {"central_num_iterations": given.rounds, "evaluation_frequency": given.rounds + 1}
    settings = NNAlgorithmParams(**rounds, train_cohort_size=given.clients, val_cohort_size=None)
    steps = NNTrainHyperParams(local_num_epochs=1, local_learning_rate=given.lr, local_batch_size=given.batch)
    marks = Marks()
    backend = SimulatedBackend(training_data=data, val_data=data)
    FederatedAveraging().run(settings, backend, model, steps, callbacks=[clock(marks)])
    with torch.no_grad():
        marks.tell(float(np.mean([cross_entropy(network(A), b).item() for A, b in zip(X, y, strict=True)])))


def clock(marks: Marks) -> Any:
    """A callback of pfl that marks the end of each round."""
    import torch
    from pfl.callback.base import TrainingProcessCallback
    from pfl.metrics import Metrics

    class Clock(TrainingProcessCallback):  # type: ignore[misc]
        def after_central_iteration(self, *args: Any, **others: Any) -> tuple[bool, Any]:
            if torch.cuda.is_available():
                torch.cuda.synchronize()
            marks.mark()
            return False, Metrics()

    return Clock()


def parameters(network: str, x: Any) -> list[tuple[Any, Any]]:
    """x (n,) as weights and biases of the layers, with the axes of JAX."""
    found = []
    last = 0  # channels of the last convolution, whose pixels the first dense layer takes
    for kind, *sizes in LAYERS[network]:
        if kind not in ("conv", "dense"):
            continue
        before, after = sizes[:2]
        kernel = sizes[2] if kind == "conv" else 1
        count = before * after * kernel**2
        W, bias = x[:count], x[count : count + after]
        x = x[count + after :]
        if kind == "conv":
            W = W.reshape(after, before, kernel, kernel).transpose(2, 3, 1, 0)
        elif last:
            side = math.isqrt(before // last)
            W = W.reshape(after, last, side, side).transpose(2, 3, 1, 0).reshape(before, after)
        else:
            W = W.reshape(after, before).T
        last = after if kind == "conv" else 0
        found.append((W, bias))
    return found


def scores(network: str, P: list[tuple[Any, Any]], samples: Any) -> Any:
    """The scores (k, 10) of samples (k, side, side, channels)."""
    import jax

    weights = iter(P)
    out = samples
    for kind, *sizes in LAYERS[network]:
        if kind == "conv":
            W, bias = next(weights)
            pad = [(sizes[3], sizes[3])] * 2
            letters = ("NHWC", "HWIO", "NHWC")
            out = jax.lax.conv_general_dilated(out, W, (1, 1), pad, dimension_numbers=letters) + bias
        elif kind == "dense":
            W, bias = next(weights)
            out = out @ W + bias
        elif kind == "pool":
            out = jax.lax.reduce_window(out, -np.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        else:
            out = jax.nn.relu(out) if kind == "relu" else out.reshape(len(out), -1)
    return out


def fedjax(given: Task) -> None:
    """Train by FedJAX."""
    import jax

    if not hasattr(jax, "tree_map"):  # FedJAX 0.0.17 calls it, and newer versions of JAX have another name only
        jax.tree_map = jax.tree.map
    import fedjax as peer
    import jax.numpy as jnp

    def loss(P: Any, batch: Any) -> Any:
        found = jax.nn.log_softmax(scores(given.network, P, batch["x"]))
        return -jnp.take_along_axis(found, batch["y"][:, None], 1).mean()

    X = np.ascontiguousarray(given.X.transpose(0, 1, 3, 4, 2))
    clients = [{"x": A, "y": b.astype(np.int32)} for A, b in zip(X, given.y, strict=True)]
    data = peer.InMemoryFederatedData({f"{i:06}": own for i, own in enumerate(clients)})
    method = peer.algorithms.fed_avg.federated_averaging(
        jax.jit(jax.grad(lambda P, batch, _: loss(P, batch))),
        peer.optimizers.sgd(given.lr),
        peer.optimizers.sgd(1.0),
        peer.ShuffleRepeatBatchHParams(batch_size=given.batch, num_epochs=1),
    )
    sampler = peer.client_samplers.UniformGetClientSampler(data, given.clients, seed=0)
    state = method.init([(jnp.asarray(W), jnp.asarray(bias)) for W, bias in parameters(given.network, given.x)])
    marks = Marks()
    for _ in range(given.rounds):
        state, _ = method.apply(state, sampler.sample())
        jax.block_until_ready(state.params)
        marks.mark()
    marks.tell(float(np.mean([float(loss(state.params, batch)) for batch in clients])))


if __name__ == "__main__":
    peer, *words = sys.argv[1:]
    if words[-1] == "cpu" and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core for all
    {"pfl": pfl, "fedjax": fedjax}[peer](read(*words))
