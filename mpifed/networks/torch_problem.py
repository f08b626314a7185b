"""The base of problems with a PyTorch network: loss and metric, sizes, and clients in groups or one at a time."""

import math
from abc import abstractmethod
from collections.abc import Iterator
from functools import partial
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta

from mpifed.core.arrays import to_numpy
from mpifed.core.streams import stream
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.data.labels import count_classes
from mpifed.kernels.blocks import Block
from mpifed.kernels.torch_device import choose_device
from mpifed.networks import torch_training
from mpifed.networks.torch_checks import refuse_impure
from mpifed.networks.torch_function import NetworkOptions
from mpifed.networks.torch_groups import Groups
from mpifed.networks.torch_losses import LOSSES, Targets, check_output_shape, make_loss, make_metric
from mpifed.networks.torch_network import ClientSamples, Network, group_size
from mpifed.networks.torch_training import Training

Sides = Annotated[tuple[Annotated[int, Meta(ge=1)], ...], Meta(min_length=1)]
NETWORKS: dict[tuple[bytes, int, int], tuple[Network, Groups]] = {}  # by options, features, parameters; built once


class TorchProblem(Training):
    """The base of problems with a network: f_i(x) = mean loss of its scores at parameters x + (lam/2)‖weights‖².

    ``value``, ``value_grad`` and ``predict`` use evaluation mode, ``seeded_grad`` training mode, and so does ``grad``,
    which is ``seeded_grad`` with seed 0.
    """

    shape: Annotated[Sides | None, Meta(description="shape of a sample, such as [3, 64, 64] (default: flat)")] = None
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
        """Return the device of this rank, on which the network computes from samples in memory."""
        return choose_device(self.device)

    @abstractmethod
    def make(self, n: int, classes: int) -> Any:
        """Return the torch.nn.Module for samples of n features, with a score for each class."""

    def classes(self, n: int, size: int) -> int:
        """Return the number of scores of a network with ``size`` parameters; 0 if ``make`` does not need it."""
        return 0

    def sample_shape(self, n: int) -> tuple[int, ...]:
        """Return the shape of a sample with n features; raise ValueError if ``shape`` does not have n numbers."""
        if self.shape is not None and math.prod(self.shape) != n:
            wanted = f"shape = {toml_value(self.shape)} needs {math.prod(self.shape)}"
            raise ValueError(f"samples have {n} features, but {wanted}")
        return self.shape or (n,)

    def group(self, n: int) -> int:
        return 1 if self.batched is False else group_size(choose_device(self.device).type, n)

    def run_attributes(self, n: int, start: Array) -> dict[str, Any]:
        group, reason = self._built(n, start.size)[1].first_choice(n, start.dtype)
        return {"group": group, "group_reason": reason}

    def dim(self, data: Dataset) -> int:
        return len(self.initial(data, 0))

    def initial(self, data: Dataset, seed: int) -> Array:
        """Return the network's initial parameters (n,) without frozen ones, drawn by PyTorch from the seed."""
        scores = self._score_count(data)
        NETWORKS.clear()  # a notebook may have redefined the module
        net = self._make(data.n, scores, int(stream(seed, "model").integers(2**63)))
        check_output_shape(net.output, scores, net.options.loss, self._metric_name())
        if not len(net.start):
            raise ValueError("the network has no parameter that is trained")
        _ = net.mean  # refuses a loss that cannot be used
        refuse_impure(net)
        if self.measure_names():
            make_metric(self._metric_name(), self.takes())
        if not net.takes_one_sample and min(data.sizes) == 1:
            raise ValueError(
                f"client {int(np.argmin(data.sizes))} has one sample, but the network takes no fewer than two: raise "
                "data.partition.least_samples of dirichlet, or take nn.GroupNorm in place of batch normalisation"
            )
        return self.first_parameters(net, data)

    def module_of(self, n: int, x: Array) -> Any:
        """Return the torch.nn.Module with the parameters x (n,), for samples of n features (0: unknown)."""
        n = n or math.prod(self.shape or (0,))
        make = partial(self.make, n, self.classes(n, len(x)))
        integers = getattr(self, "integers", False)
        module = torch_training.build_module(make, self.pretrained, self.sample_shape(n), integers)
        return torch_training.put_parameters(module, x)

    def decay_mask(self, data: Dataset) -> Array:
        """Return which parameters have two or more dimensions: (n,) bool."""
        return self._make(data.n, self._score_count(data), 0).weights

    def parameter_sizes(self, data: Dataset) -> dict[str, int]:
        """Return the sizes of the trained parameters, by the names of named_parameters()."""
        shapes = self._make(data.n, self._score_count(data), 0).shapes
        return {name: math.prod(shape) for name, shape in shapes.items()}

    def _score_count(self, data: Dataset) -> int:
        """Return the number of scores for each sample; raise ValueError if the labels do not go with the loss."""
        if not self.classifies():
            return 1
        classes = count_classes(data)
        if self.loss != "binary-cross-entropy":
            return classes
        if classes > 2:
            raise ValueError(f"loss = {toml_value(self.loss)} is for labels 0 and 1, but there are {classes} classes")
        return 1

    def gpu(self) -> str:
        return "" if self.device == "cpu" or self.batched is False else self.device

    def _metric_name(self) -> str:
        """Return the metric that is recorded beside f; for numbers rmse by default, for classes none."""
        return self.metric or ("" if self.classifies() else "rmse")

    def takes(self) -> Targets:
        return LOSSES[self.loss][0] if self.loss in LOSSES else self.targets or "classes"

    def classifies(self) -> bool:
        return self.takes() == "classes"

    def measure_names(self) -> tuple[str, ...]:
        name = self._metric_name().rpartition(":")[2]
        return (name,) if name else ()

    def measure(self, block: Block, X: Array) -> tuple[Array, ...]:
        """Return the metric of each client on its samples: (c,)."""
        metric = make_metric(self._metric_name(), self.takes())
        return (block.xp.asarray(np.array([metric.of(*pair) for pair in self._client_scores(block, X)])),)

    def _client_scores(self, block: Block, X: Array) -> Iterator[tuple[Any, Any]]:
        """Yield scores and targets of all samples of each client."""
        net, groups = self._built(block.n, X.shape[-1])
        results = groups.run(block, X, False)
        if net.torch.is_tensor(X):
            block, X = block.in_cpu_memory(), to_numpy(X)
        for i, (x, samples) in enumerate(self._clients(block, X)):
            b = samples.b
            yield net.scores(x, samples) if results is None else (results.scores[i, : len(b)], net.targets(b))

    def predict(self, block: Block, X: Array) -> Array:
        """Return the class with the largest score (the first at a tie): (c, D); 0 on the padding."""
        net, groups = self._built(block.n, X.shape[-1])
        results = groups.run(block, X, False)
        if results is not None:
            return groups.classes(block, results.scores)
        if net.torch.is_tensor(X):
            return block.xp.asarray(self.predict(block.in_cpu_memory(), to_numpy(X)))
        predicted = np.zeros(block.b.shape, np.intp)
        for i, (x, samples) in enumerate(self._clients(block, X)):
            if len(samples.A):
                predicted[i, : len(samples.A)] = net.classes(net.scores(x, samples)[0])
        return predicted

    def value(self, block: Block, X: Array) -> Array:
        return self._run(block, X, gradient=False)[0]

    def grad(self, block: Block, X: Array) -> Array:
        return self.seeded_grad(block, X, np.zeros(len(block), np.int64))

    def seeded_grad(self, block: Block, X: Array, seeds: Array) -> Array:
        return self._run(block, X, seeds=seeds)[1]

    def seeded_descent(self, block: Block, X: Array, rate: Array | float, seeds: Array) -> Array:
        return self._run(block, X, True, seeds, rate)[1]

    def value_grad(self, block: Block, X: Array) -> tuple[Array, Array]:
        return self._run(block, X)[:2]

    def evaluate(self, block: Block, X: Array) -> tuple[Array, Array, Array | None]:
        f, G, predicted = self._run(block, X)
        return f, G, predicted if self.classifies() else None

    def value_predict(self, block: Block, X: Array) -> tuple[Array, Array | None]:
        f, _, predicted = self._run(block, X, gradient=False)
        return f, predicted if self.classifies() else None

    def _run(
        self,
        block: Block,
        X: Array,
        gradient: bool = True,
        seeds: Array | None = None,
        rate: Array | float | None = None,
    ) -> tuple[Array, Array, Array]:
        """Return values (c,), gradients (c, n) if ``gradient``, and predicted classes (c, D).

        With ``seeds``, values and gradients are those of a local step, without classes; with a ``rate`` too,
        x_i − rate·∇f_i(x_i) in place of gradients. The results of a client do not depend on the others in the block.
        """
        net, groups = self._built(block.n, X.shape[-1])
        results = groups.run(block, X, gradient, seeds, rate)
        if results is not None:
            f, G = groups.as_type_of(X, results.f), groups.as_type_of(X, results.rows)
            return f, G, block.b[:, :0] if seeds is not None else groups.classes(block, results.scores)
        if net.torch.is_tensor(X):  # one at a time, from copies in memory
            rate = to_numpy(rate) if net.torch.is_tensor(rate) else rate
            f, G, predicted = self._run(block.in_cpu_memory(), to_numpy(X), gradient, seeds, rate)
            return block.xp.asarray(f), block.xp.asarray(G), block.xp.asarray(predicted)
        f = np.empty(len(block), block.b.dtype)
        G = np.empty((len(block) if gradient else 0, X.shape[-1]), block.b.dtype)
        predicted = np.zeros(block.b.shape, np.intp)
        rates = None if rate is None else np.broadcast_to(np.ravel(rate), len(block)).tolist()
        for i, (x, samples) in enumerate(self._clients(block, X)):
            seed = None if seeds is None else int(seeds[i])
            f[i], g, classes = net.run(x, samples, gradient, seed, None if rates is None else rates[i])
            predicted[i, : len(classes)] = classes
            if gradient:
                G[i] = g
        return f, G, predicted

    def _clients(self, block: Block, X: Array) -> Iterator[tuple[Array, ClientSamples]]:
        """Yield x_i (n,) and the samples of each client, without padding; a mini-batch may hold fewer than d_i."""
        X = np.ascontiguousarray(X, block.b.dtype)
        for i in range(len(block)):
            d = np.count_nonzero(block.w[i])
            training = None
            if block.training is not None:
                full, rows = block.training
                training = full.dense(rows[i])
            yield (
                X if X.ndim == 1 else X[i],
                ClientSamples(block.dense(i)[:d], block.b[i, :d], block.w[i, :d], training),
            )

    def _built(self, n: int, size: int) -> tuple[Network, Groups]:
        """Return the network for these options and sizes, built once per process; frozen parameters have seed 0."""
        key = (msgspec.json.encode(self), n, size)
        if key not in NETWORKS:
            net = self._make(n, self.classes(n, size), 0)
            NETWORKS[key] = net, Groups(net, self.batched is not False)
        return NETWORKS[key]

    def _make(self, n: int, classes: int, seed: int) -> Network:
        """Build the network for n features and so many classes, with initial parameters drawn from ``seed``."""
        loss = make_loss(self.loss, self.targets)
        options = NetworkOptions(
            self.sample_shape(n), getattr(self, "integers", False), loss, self.lam, self.device, self.autocast
        )
        return Network(lambda: torch_training.load_parameters(self.make(n, classes), self.pretrained), options, seed)
