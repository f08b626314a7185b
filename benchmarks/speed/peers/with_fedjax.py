"""The rounds of ``benchmarks.speed.peers`` by FedJAX (pip install fedjax): see ``common``.

J. H. Ro, A. T. Suresh, K. Wu, "FedJAX: federated learning simulation with JAX", arXiv:2108.02117 (2021). Clients are
trained one after the other by a jitted function. Images have their channels last, as JAX computes fastest on a CPU; the
weights are those of the networks of ``models``.
"""

import math
from typing import Any

import fedjax
import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.speed.peers.common import Marks, Task, task

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
    "small CNN": [
        *(("conv", 3, 4, 3, 0), ("relu",), ("pool",), ("conv", 4, 8, 3, 0), ("relu",), ("pool",), ("flat",)),
        *(("dense", 32, 16), ("relu",), ("dense", 16, 10)),
    ],
}
LETTERS = ("NHWC", "HWIO", "NHWC")
if not hasattr(jax, "tree_map"):  # FedJAX 0.0.17 calls it, and newer versions of JAX have it under another name only
    jax.tree_map = jax.tree.map


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
        found.append((jnp.asarray(W), jnp.asarray(bias)))
    return found


def scores(network: str, P: list[tuple[Any, Any]], samples: Any) -> Any:
    """The scores (k, 10) of samples (k, side, side, channels)."""
    weights = iter(P)
    out = samples
    for kind, *sizes in LAYERS[network]:
        if kind == "conv":
            W, bias = next(weights)
            pad = [(sizes[3], sizes[3])] * 2
            out = jax.lax.conv_general_dilated(out, W, (1, 1), pad, dimension_numbers=LETTERS) + bias
        elif kind == "dense":
            W, bias = next(weights)
            out = out @ W + bias
        elif kind == "pool":
            out = jax.lax.reduce_window(out, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
        else:
            out = jax.nn.relu(out) if kind == "relu" else out.reshape(len(out), -1)
    return out


def run(given: Task) -> None:
    """Train, and print what was measured."""
    X = np.ascontiguousarray(given.X.transpose(0, 1, 3, 4, 2))

    def loss(P: Any, batch: Any) -> Any:
        found = jax.nn.log_softmax(scores(given.network, P, batch["x"]))
        return -jnp.take_along_axis(found, batch["y"][:, None], 1).mean()

    data = fedjax.InMemoryFederatedData(
        {f"{i:06}": {"x": A, "y": b.astype(np.int32)} for i, (A, b) in enumerate(zip(X, given.y, strict=True))}
    )
    method = fedjax.algorithms.fed_avg.federated_averaging(
        jax.jit(jax.grad(lambda P, batch, _: loss(P, batch))),
        fedjax.optimizers.sgd(given.lr),
        fedjax.optimizers.sgd(1.0),
        fedjax.ShuffleRepeatBatchHParams(batch_size=given.batch, num_epochs=1),
    )
    sampler = fedjax.client_samplers.UniformGetClientSampler(data, given.clients, seed=0)
    state = method.init(parameters(given.network, given.x))
    marks = Marks()
    for _ in range(given.rounds):
        state, _ = method.apply(state, sampler.sample())
        jax.block_until_ready(state.params)
        marks.mark()
    batches = ({"x": A, "y": b.astype(np.int32)} for A, b in zip(X, given.y, strict=True))
    marks.tell(float(np.mean([float(loss(state.params, batch)) for batch in batches])))


if __name__ == "__main__":
    run(task())
