"""Generated images of several classes: data for a CNN without a download."""

from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from mpifed.core.promises import Supports, supporting
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.data.dataset import ClientByClient, ClientCount, Data, Dataset, TestFraction
from mpifed.data.pool import split_tests

WAVES = 4  # number of waves in the pattern of a class
FINEST = 4  # highest number of periods across the image


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
    options = supporting("samples", "size", "channels", "classes", "per_client", "noise", "test")

    objective = "softmax"

    clients: ClientCount = 20
    samples: Annotated[int, Meta(ge=1, le=10**9, description="images of each client")] = 60
    size: Annotated[int, Meta(ge=1, le=1024, description="side of an image in pixels")] = 64
    channels: Annotated[int, Meta(ge=1, le=16, description="channels of an image")] = 3
    classes: Annotated[int, Meta(ge=2, le=10_000, description="number of classes")] = 6
    per_client: Annotated[int, Meta(ge=1, description="number of classes at each client")] = 2
    noise: Annotated[float, Meta(ge=0, description="standard deviation of the noise; a pattern has about 1")] = 0.5
    test: TestFraction = 0.2

    def __post_init__(self) -> None:
        if self.per_client > self.classes:
            raise ValueError(f"per_client = {self.per_client} is more than classes = {self.classes}")

    def load(self, seed: int, dtype: str) -> Dataset:
        return split_tests(GeneratedImages(self, seed, dtype), self.test)
