"""What problems with a PyTorch network share: loss and metric, sizes, and clients in groups or one at a time."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta

from mpifed.core.arrays import is_tensor, to_numpy
from mpifed.core.streams import stream
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array, Count
from mpifed.data.dataset import Dataset
from mpifed.data.labels import class_count
from mpifed.kernels.blocks import Block
from mpifed.kernels.torch_device import device_of
from mpifed.networks import torch_training
from mpifed.networks.torch_again import refuse_other_scores
from mpifed.networks.torch_function import Options
from mpifed.networks.torch_groups import Groups
from mpifed.networks.torch_losses import LOSSES, Targets, loss_of, metric_of, refuse_scores
from mpifed.networks.torch_network import Network, Samples, group_of
from mpifed.networks.torch_training import Training

Shape = Annotated[tuple[Count, ...], Meta(min_length=1)]
NETWORKS: dict[tuple[bytes, int, int], tuple[Network, Groups]] = {}  # by options, features, parameters; built once
GROUPED = "a rehearsal found the same bits for a client in every group"


class TorchProblem(Training):
    """f_i(x) = mean loss of the scores of a network with parameters x + (lam/2)‖weights‖².

    ``value``, ``value_grad`` and ``predict`` use evaluation mode, ``seeded_grad`` training mode, and so does ``grad``,
    which is ``seeded_grad`` with seed 0.
    """

    shape: Annotated[Shape | None, Meta(description="shape of a sample, such as [3, 64, 64] (default: flat)")] = None
    loss: Annotated[str, Meta(description=f"{', '.join(LOSSES)}, or path.py:function of (scores, targets)")] = (
        "cross-entropy"
    )
    targets: Annotated[Targets | None, Meta(description="what a loss of your own is for (default: classes)")] = None
    metric: Annotated[
        str | None,
        Meta(description="recorded too: rmse (default for numbers), mae, r2, or path.py:function of (scores, targets)"),
    ] = None
    lam: Annotated[
        float, Meta(ge=0, description="regularisation λ of weights: parameters of two or more dimensions")
    ] = 0.0
    device: Annotated[
        Literal["cpu", "cuda", "auto"], Meta(description="cuda: one GPU per rank; auto: a GPU if there is one")
    ] = "cpu"
    batched: Annotated[
        Literal["auto"] | bool, Meta(description="clients computed in groups where the network allows it; false: never")
    ] = "auto"

    def computer(self) -> Any:
        """The device of this rank, on which the network computes from samples in memory."""
        return device_of(self.device)

    @abstractmethod
    def make(self, n: int, classes: int) -> Any:
        """The torch.nn.Module for samples of n features, with so many scores."""

    def classes(self, n: int, size: int) -> int:
        """The number of scores of a network with ``size`` parameters; 0 where ``make`` does not need it."""
        return 0

    def sample(self, n: int) -> tuple[int, ...]:
        """The shape of a sample with n features; ValueError where ``shape`` does not have n numbers."""
        if self.shape is not None and math.prod(self.shape) != n:
            wanted = f"shape = {toml_value(self.shape)} needs {math.prod(self.shape)}"
            raise ValueError(f"samples have {n} features, but {wanted}")
        return self.shape or (n,)

    def group(self, n: int) -> int:
        return 1 if self.batched is False else group_of(device_of(self.device).type, n)

    def described(self, n: int, start: Array) -> dict[str, Any]:
        groups = self._built(n, start.size)[1]
        reason = groups.described(n, start.dtype)
        return {"group": 1 if reason else groups.size, "group_reason": reason or GROUPED}

    def dim(self, data: Dataset) -> int:
        return len(self.initial(data, 0))

    def initial(self, data: Dataset, seed: int) -> Array:
        """The network's own initial parameters (n,), drawn by PyTorch from the seed; frozen ones are not among them."""
        scores = self._scores(data)
        NETWORKS.clear()  # a notebook may have defined the module anew
        net = self._make(data.n, scores, int(stream(seed, "model").integers(2**63)))
        refuse_scores(net.output, scores, net.options.loss, self._metric_name())
        if not len(net.start):
            raise ValueError("the network has no parameter that is trained")
        _ = net.mean  # a loss that cannot be used is refused now
        refuse_other_scores(net)
        if self.measured():
            metric_of(self._metric_name(), self.takes())
        if not net.alone and min(data.sizes) == 1:
            raise ValueError(
                f"client {int(np.argmin(data.sizes))} has one sample, but the network takes two or more at a time, "
                "as batch normalisation does"
            )
        return self.begun(net, data)

    def module_of(self, n: int, x: Array) -> Any:
        """The torch.nn.Module for samples of n features, 0 where a file does not say it, with the parameters x (n,)."""
        n = n or math.prod(self.shape or (0,))
        make = partial(self.make, n, self.classes(n, len(x)))
        integers = getattr(self, "integers", False)
        return torch_training.put(torch_training.drawn(make, self.pretrained, self.sample(n), integers), x)

    def decays(self, data: Dataset) -> Array:
        """The parameters of two or more dimensions: (n,) bool."""
        return self._make(data.n, self._scores(data), 0).weights

    def _scores(self, data: Dataset) -> int:
        """The number of scores for each sample; ValueError where the labels do not go with the loss."""
        if not self.classifies():
            return 1
        classes = class_count(data)
        if self.loss != "binary-cross-entropy":
            return classes
        if classes > 2:
            raise ValueError(f"loss = {toml_value(self.loss)} is for labels 0 and 1, but there are {classes} classes")
        return 1

    def gpu(self) -> str:
        return "" if self.device == "cpu" or self.batched is False else self.device

    def _metric_name(self) -> str:
        """The metric that is recorded beside f; numbers have one by default, for classes it is empty."""
        return self.metric or ("" if self.classifies() else "rmse")

    def takes(self) -> Targets:
        return LOSSES[self.loss][0] if self.loss in LOSSES else self.targets or "classes"

    def classifies(self) -> bool:
        return self.takes() == "classes"

    def measured(self) -> tuple[str, ...]:
        name = self._metric_name().rpartition(":")[2]
        return (name,) if name else ()

    def measure(self, block: Block, X: Array) -> tuple[Array, ...]:
        """The metric of each client on its samples: (c,)."""
        metric = metric_of(self._metric_name(), self.takes())
        return (block.xp.asarray(np.array([metric.of(*own) for own in self._scores_of(block, X)])),)

    def _scores_of(self, block: Block, X: Array) -> Iterator[tuple[Any, Any]]:
        """Scores and targets of all samples of each client."""
        net, groups = self._built(block.n, X.shape[-1])
        found = groups.run(block, X, False)
        if is_tensor(X):
            block, X = block.copied(), to_numpy(X)
        for i, (x, own) in enumerate(self._clients(block, X)):
            yield net.scores(x, own) if found is None else (found.scores[i, : len(own.b)], net.targets(own.b))

    def predict(self, block: Block, X: Array) -> Array:
        """The class with the largest score (the first of equal ones): (c, D); 0 on the padding."""
        net, groups = self._built(block.n, X.shape[-1])
        whole = groups.run(block, X, False)
        if whole is not None:
            return groups.classes(block, whole.scores)
        if is_tensor(X):
            return block.xp.asarray(self.predict(block.copied(), to_numpy(X)))
        found = np.zeros(block.b.shape, np.intp)
        for i, (x, own) in enumerate(self._clients(block, X)):
            if len(own.A):
                found[i, : len(own.A)] = net.classes(net.scores(x, own)[0])
        return found

    def value(self, block: Block, X: Array) -> Array:
        return self._run(block, X, gradient=False)[0]

    def grad(self, block: Block, X: Array) -> Array:
        return self.seeded_grad(block, X, np.zeros(len(block), np.int64))

    def seeded_grad(self, block: Block, X: Array, seeds: Array) -> Array:
        return self._run(block, X, seeds=seeds)[1]

    def value_grad(self, block: Block, X: Array) -> tuple[Array, Array]:
        return self._run(block, X)[:2]

    def evaluate(self, block: Block, X: Array) -> tuple[Array, Array, Array | None]:
        f, G, found = self._run(block, X)
        return f, G, found if self.classifies() else None

    def _run(
        self, block: Block, X: Array, gradient: bool = True, seeds: Array | None = None
    ) -> tuple[Array, Array, Array]:
        """Values (c,), gradients (c, n) if ``gradient``, and predicted classes (c, D); none of these with ``seeds``.

        With them it is those of a local step. What is found of a client does not depend on the others in the block.
        """
        net, groups = self._built(block.n, X.shape[-1])
        whole = groups.run(block, X, gradient, seeds)
        if whole is not None:
            G = whole.f[:, None][:0] if whole.gradient is None else whole.gradient
            f, G = groups.like(X, whole.f), groups.like(X, G)
            return f, G, block.b[:, :0] if seeds is not None else groups.classes(block, whole.scores)
        if is_tensor(X):  # one at a time, from copies in memory
            f, G, found = self._run(block.copied(), to_numpy(X), gradient, seeds)
            return block.xp.asarray(f), block.xp.asarray(G), block.xp.asarray(found)
        f = np.empty(len(block), block.b.dtype)
        G = np.empty((len(block) if gradient else 0, X.shape[-1]), block.b.dtype)
        found = np.zeros(block.b.shape, np.intp)
        for i, (x, own) in enumerate(self._clients(block, X)):
            f[i], g, classes = net.run(x, own, gradient, None if seeds is None else int(seeds[i]))
            found[i, : len(classes)] = classes
            if gradient:
                G[i] = g
        return f, G, found

    def _clients(self, block: Block, X: Array) -> Iterator[tuple[Array, Samples]]:
        """The point x_i (n,) and the samples of each client, without padding; a mini-batch may hold fewer than d_i."""
        X = np.ascontiguousarray(X, block.b.dtype)
        for i in range(len(block)):
            d = np.count_nonzero(block.w[i])
            training = None
            if block.training is not None:
                whole, rows = block.training
                training = whole.dense(rows[i])
            yield X if X.ndim == 1 else X[i], Samples(block.dense(i)[:d], block.b[i, :d], block.w[i, :d], training)

    def _built(self, n: int, size: int) -> tuple[Network, Groups]:
        """The network for these options and sizes, built once per process; frozen random parameters have the seed 0."""
        key = (msgspec.json.encode(self), n, size)
        if key not in NETWORKS:
            net = self._make(n, self.classes(n, size), 0)
            NETWORKS[key] = net, Groups(net, self.batched is not False)
        return NETWORKS[key]

    def _make(self, n: int, classes: int, seed: int) -> Network:
        loss = loss_of(self.loss, self.targets)
        options = Options(self.sample(n), getattr(self, "integers", False), loss, self.lam, self.device, self.autocast)
        return Network(lambda: torch_training.pretrained(self.make(n, classes), self.pretrained), options, seed)
