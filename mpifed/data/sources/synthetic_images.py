"""Made images: something for a CNN to learn where no images are at hand."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from msgspec import Meta

from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.data.base import Clients, Data, Dataset, Test
from mpifed.data.split import split_made

WAVES = 4  # of which the pattern of a class is made
FINEST = 4  # waves across the image, at most


class MadeImages(Dataset):
    """Images of all clients; the patterns are the same on every rank, client i draws its own images."""

    def __init__(self, source: ImageClasses, seed: int, dtype: str) -> None:
        self.source, self.seed, self.dtype = source, seed, dtype
        self.m, self.classes = source.clients, source.classes
        self.n = source.channels * source.size**2
        self.sizes = np.full(self.m, source.samples, dtype=np.int64)
        self.patterns = np.stack([self.pattern(c) for c in range(self.classes)])  # (classes, channels, size, size)

    def pattern(self, c: int) -> Array:
        """The pattern (channels, size, size) of class c, of mean square about 1."""
        rng, channels = stream(self.seed, "data", 0, c + 1), self.source.channels
        place = np.arange(self.source.size) / self.source.size
        u, v = rng.integers(-FINEST, FINEST, size=(2, channels, WAVES, 1, 1), endpoint=True)
        phase = rng.random((channels, WAVES, 1, 1))
        waves = np.cos(2 * np.pi * (u * place[:, None] + v * place + phase))
        return waves.sum(axis=1) * np.sqrt(2 / WAVES)

    def rows(self, lo: int, hi: int) -> tuple[Array, Array]:
        X, y = (
            np.empty((hi - lo, self.source.samples, self.n), self.dtype),
            np.empty((hi - lo, self.source.samples), self.dtype),
        )
        for i in range(lo, hi):
            X[i - lo], y[i - lo] = self.draw(i)
        return X.reshape(-1, self.n), y.ravel()

    def draw(self, i: int) -> tuple[Array, Array]:
        """The images (d_i, n) and labels (d_i,) of client i."""
        source, rng = self.source, stream(self.seed, "data", i + 1)
        own = rng.permutation(self.classes)[: source.per_client]
        y = rng.permutation(np.resize(own, source.samples))
        shift = rng.integers(source.size // 8 + 1, size=(2, source.samples, 1))  # an object is not always in the middle
        down, across = (np.arange(source.size) + shift) % source.size
        image = self.patterns[
            y[:, None, None, None],
            np.arange(source.channels)[:, None, None],
            down[:, None, :, None],
            across[:, None, None, :],
        ]
        X = image.reshape(source.samples, self.n)
        return X + source.noise * rng.standard_normal(X.shape), y


class ImageClasses(Data, tag="images"):
    """Made images of classes, so that a CNN can be trained where no images are at hand (sizes as of Medical MNIST in flame).

    An image is the pattern of its class, a sum of four random waves a channel, shifted by up to size/8 pixels, plus
    ``noise``·N(0, 1). A row is an image, its channels one after the other: (channels, size, size) row-major. A client
    has images of ``per_client`` classes, as many of each. A rank makes the images of its own clients and no others.
    """

    objective = "softmax"

    clients: Clients = 20
    samples: Annotated[int, Meta(ge=1, le=10**9, description="images of each client")] = 60
    size: Annotated[int, Meta(ge=1, le=1024, description="side of an image in pixels")] = 64
    channels: Annotated[int, Meta(ge=1, le=16, description="channels of an image")] = 3
    classes: Annotated[int, Meta(ge=2, le=10_000, description="number of classes")] = 6
    per_client: Annotated[int, Meta(ge=1, description="classes of which a client has images")] = 2
    noise: Annotated[float, Meta(ge=0, description="standard deviation of the noise; a pattern has about 1")] = 0.5
    test: Test = 0.2

    def __post_init__(self) -> None:
        if self.per_client > self.classes:
            raise ValueError(f"per_client = {self.per_client} is more than classes = {self.classes}")

    def load(self, seed: int, dtype: str) -> Dataset:
        seed = seed if self.seed is None else self.seed
        return split_made(MadeImages(self, seed, dtype), self.test, seed)
