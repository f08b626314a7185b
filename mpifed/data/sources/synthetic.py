"""Generated classes: synthetic(alpha, beta) of FedProx, and images of waves."""

import math
from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from mpifed.core.arrays import as_slice, row_offsets
from mpifed.core.promises import Supports, supporting
from mpifed.core.streams import stream, streams
from mpifed.core.typing import Array
from mpifed.data.dataset import (
    ClientByClient,
    ClientCount,
    Data,
    Dataset,
    GeneratedDataset,
    iter_client_ranges,
)
from mpifed.data.split import TestAmount, ValidationAmount, split_source

AT_ONCE = 1 << 18  # numbers drawn at once: 2 MB
WAVES = 4  # number of waves in the pattern of a class
FINEST = 4  # highest number of periods across the image


class SyntheticClients(GeneratedDataset):
    """The samples of all clients, each from its own random stream; clients of one size are computed at once."""

    def __init__(self, source: Any, seed: int, dtype: str) -> None:
        super().__init__(source, seed, dtype)
        self.n = source.features
        self.classes = source.classes
        self.sizes = stream(self.seed, "data").integers(source.least, source.most, size=self.m, endpoint=True)
        self.deviation = np.arange(1, self.n + 1) ** -0.6  # the square root of Sigma_jj
        self.shapes = {"u": (1,), "B": (1,), "v": (self.n,), "W": (self.classes, self.n), "b": (self.classes,)}
        self.model = {}
        if source.iid:
            rng = stream(self.seed, "data", 0, 1)
            self.model = {name: rng.standard_normal(self.shapes.pop(name)) for name in ("W", "b")}
            del self.shapes["v"]

    def rows(self, lo: int, hi: int) -> tuple[Array, Array]:
        sizes = self.sizes[lo:hi]
        starts = row_offsets(sizes)
        X = np.empty((int(starts[-1]), self.n), self.dtype)
        y = np.empty(len(X), self.dtype)
        for first, last in iter_client_ranges(sizes + self.classes, self.n, AT_ONCE):
            for d in np.unique(sizes[first:last]).tolist():
                clients = first + np.flatnonzero(sizes[first:last] == d)
                rows = as_slice((starts[clients, None] + np.arange(d)).ravel())
                x, labels = self.draw(lo + clients, d)
                X[rows] = x.reshape(-1, self.n)
                y[rows] = labels.ravel()
        return X, y

    def draw(self, clients: Array, d: int) -> tuple[Array, Array]:
        """Draw x (c, d, n) and y (c, d) of clients that have d samples each."""
        # All numbers of a client come from its stream in one call, in the order of the formulas. u and B are drawn in
        # any case, so that the numbers after them are the same with iid and without.
        shapes = self.shapes | {"x": (d, self.n)}
        widths = [math.prod(shape) for shape in shapes.values()]
        drawn = np.empty((len(clients), sum(widths)))
        for row, rng in zip(drawn, streams(self.seed, "data", clients + 1), strict=True):
            rng.standard_normal(out=row)
        parts = np.split(drawn, np.cumsum(widths)[:-1], axis=1)
        z = {name: part.reshape(-1, *shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}
        z["x"] *= self.deviation
        if self.source.iid:
            z |= self.model
        else:
            u = self.source.alpha * z["u"]
            z["W"] += u[:, None]
            z["b"] += u
            z["x"] += (self.source.beta * z["B"] + z["v"])[:, None]
        return z["x"], np.argmax(z["x"] @ z["W"].swapaxes(-1, -2) + z["b"][..., None, :], axis=-1)


class Synthetic(Data, tag="synthetic"):
    """synthetic(alpha, beta), 60 features and 10 classes, labelled at each client by its own model (flame section V).

    Client k draws u_k ~ N(0, alpha), B_k ~ N(0, beta), W_k ~ N(u_k, 1) (classes, features), b_k ~ N(u_k, 1) (classes,)
    and v_k ~ N(B_k, 1) (features,). Its samples are x ~ N(v_k, Sigma), Sigma_jj = j^-1.2, with y = argmax(W_k x + b_k).
    alpha and beta are standard deviations; sizes are uniform whole numbers from least to most (errata, FLAME).
    ``iid``: all clients share W, b ~ N(0, 1), and v_k = 0.
    Source: Li et al., Federated Optimization in Heterogeneous Networks (FedProx), 2020, arXiv 1812.06127, section 5.1;
    FLAME, 2023, arXiv 2311.06756.
    """

    # Generated client by client from the seed: no private samples, and the same ones on every rank.
    supports = Supports.EVERYTHING
    options = supporting("alpha", "beta", "iid", "features", "classes", "least", "most", "test", "validation")

    objective = "softmax"

    clients: ClientCount = 30
    alpha: Annotated[
        float, Meta(ge=0, description="how much the models of the clients differ, a standard deviation")
    ] = 0.5
    beta: Annotated[
        float, Meta(ge=0, description="how much the inputs of the clients differ, a standard deviation")
    ] = 0.5
    iid: Annotated[bool, Meta(description="one model and one input distribution for all clients")] = False
    features: Annotated[int, Meta(ge=1, le=10**8, description="number of features n")] = 60
    classes: Annotated[int, Meta(ge=2, le=10_000, description="number of classes")] = 10
    least: Annotated[int, Meta(ge=1, le=10**9, description="fewest samples of a client")] = 5000
    most: Annotated[int, Meta(ge=1, le=10**9, description="most samples of a client")] = 9999
    test: TestAmount = 0.2
    validation: ValidationAmount = 0.0

    def __post_init__(self) -> None:
        if self.least > self.most:
            raise ValueError(f"least = {self.least} is more than most = {self.most}")

    def load(self, seed: int, dtype: str) -> Dataset:
        return split_source(SyntheticClients(self, seed, dtype), self)


class GeneratedImages(ClientByClient):
    """The images of all clients; all ranks have the same patterns, and each client has its own random stream."""

    def __init__(self, source: Any, seed: int, dtype: str) -> None:
        super().__init__(source, seed, dtype)
        self.classes = source.classes
        self.n = source.channels * source.size**2
        self.sizes = np.full(self.m, source.samples, dtype=np.int64)
        self.patterns = np.stack([self.pattern(c) for c in range(self.classes)])  # (classes, channels, size, size)

    def pattern(self, c: int) -> Array:
        """Return the pattern (channels, size, size) of class c, whose mean square is about 1."""
        rng = stream(self.seed, "data", 0, c + 1)
        channels = self.source.channels
        position = np.arange(self.source.size) / self.source.size
        u, v = rng.integers(-FINEST, FINEST, size=(2, channels, WAVES, 1, 1), endpoint=True)
        phase = rng.random((channels, WAVES, 1, 1))
        waves = np.cos(2 * np.pi * (u * position[:, None] + v * position + phase))
        return waves.sum(axis=1) * np.sqrt(2 / WAVES)

    def draw(self, i: int) -> tuple[Array, Array]:
        source = self.source
        rng = stream(self.seed, "data", i + 1)
        classes = rng.permutation(self.classes)[: source.per_client]
        y = rng.permutation(np.resize(classes, source.samples))
        # Images are shifted, so that the position carries no information.
        shift = rng.integers(source.size // 8 + 1, size=(2, source.samples, 1))
        down, across = (np.arange(source.size) + shift) % source.size
        channels = np.arange(source.channels)[:, None, None]
        X = self.patterns[y[:, None, None, None], channels, down[:, None, :, None], across[:, None, None, :]]
        X = X.reshape(source.samples, self.n)
        return X + source.noise * rng.standard_normal(X.shape), y


class ImageClasses(Data, tag="images"):
    """Generated images of classes, to train a CNN without a download; the default size is that of Medical MNIST.

    An image is the pattern of its class, shifted by up to size/8 pixels, plus ``noise``·N(0, 1). A pattern is a sum of
    four random waves in each channel. A row of X is an image (channels, size, size) in row-major order. A client has
    images of ``per_client`` classes, the same number of each. A rank generates the images of its own clients only.
    """

    # Generated client by client from the seed: no private samples, and the same ones on every rank.
    supports = Supports.EVERYTHING
    options = supporting("samples", "size", "channels", "classes", "per_client", "noise", "test", "validation")

    objective = "softmax"

    clients: ClientCount = 20
    samples: Annotated[int, Meta(ge=1, le=10**9, description="images of each client")] = 60
    size: Annotated[int, Meta(ge=1, le=1024, description="side of an image in pixels")] = 64
    channels: Annotated[int, Meta(ge=1, le=16, description="channels of an image")] = 3
    classes: Annotated[int, Meta(ge=2, le=10_000, description="number of classes")] = 6
    per_client: Annotated[int, Meta(ge=1, description="number of classes at each client")] = 2
    noise: Annotated[float, Meta(ge=0, description="standard deviation of the noise; a pattern has about 1")] = 0.5
    test: TestAmount = 0.2
    validation: ValidationAmount = 0.0

    def __post_init__(self) -> None:
        if self.per_client > self.classes:
            raise ValueError(f"per_client = {self.per_client} is more than classes = {self.classes}")

    def load(self, seed: int, dtype: str) -> Dataset:
        return split_source(GeneratedImages(self, seed, dtype), self)
