"""Many clients of one size, made fast: for measuring how runs scale."""

from __future__ import annotations

from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.data.base import Data, Dataset, Test
from mpifed.data.split import split_made

CHUNK = 1 << 15  # numbers of X that come from one stream: many, for a stream costs as much as a thousand numbers


class GaussianClients(Dataset):
    """Client i is a part of chunk i // per, and a chunk is always drawn whole: its numbers do not depend on lo, hi and m."""

    def __init__(self, source: Gaussian, seed: int, dtype: str) -> None:
        self.source, self.seed, self.dtype = source, seed, dtype
        self.m, self.n, self.D = source.clients, source.features, source.samples
        self.classes = 2 if source.task == "logistic" else 0
        self.sizes = np.full(self.m, self.D, dtype=np.int64)
        self.per = max(1, CHUNK // (self.D * self.n))  # clients of a chunk
        self.w = stream(seed, "data").standard_normal(self.n)

    def rows(self, lo: int, hi: int) -> tuple[Array, Array]:
        X, y = np.empty((hi - lo, self.D, self.n), self.dtype), np.empty((hi - lo, self.D), self.dtype)
        room = np.empty((self.per * self.D, self.n))
        for chunk in range(lo // self.per, -(-hi // self.per)):
            start = chunk * self.per
            a, b = max(lo, start), min(hi, start + self.per)
            A, labels = self.draw(chunk, room)
            X[a - lo : b - lo] = A.reshape(-1, self.D, self.n)[a - start : b - start]
            y[a - lo : b - lo] = labels.reshape(-1, self.D)[a - start : b - start]
        return X.reshape(-1, self.n), y.ravel()

    def draw(self, chunk: int, room: Array) -> tuple[Array, Array]:
        """A (per·D, n), in ``room``, and the labels (per·D,) of the clients of a chunk."""
        rng = stream(self.seed, "data", chunk + 1)
        rng.standard_normal(out=room)
        room /= np.sqrt(self.n)
        scores = room @ self.w
        if self.source.task == "linear":
            return room, scores + self.source.noise * rng.standard_normal(len(room))
        return room, (scores > 0) ^ (rng.random(len(room)) < self.source.noise)


class Gaussian(Data, tag="gaussian"):
    """Clients of one size with A standard normal over √n and labels from one random hyperplane w, 10 % of them flipped.

    A ~ N(0, 1/n) (samples, features), w ~ N(0, I). task "logistic": b = 1 where ⟨a, w⟩ > 0, else 0, flipped with
    probability ``noise``; "linear": b = ⟨a, w⟩ + noise·N(0, 1). A million clients of 20 x 20 take some ten seconds.
    """

    objective = "logistic"

    samples: Annotated[int, Meta(ge=1, le=10**9, description="samples of each client")] = 20
    features: Annotated[int, Meta(ge=1, le=10**8, description="number of features n")] = 20
    task: Annotated[Literal["logistic", "linear"], Meta(description="labels 0 and 1, or real numbers")] = "logistic"
    noise: Annotated[
        float, Meta(ge=0, description="share of labels flipped (logistic), standard deviation of the noise (linear)")
    ] = 0.1
    test: Test = 0.0

    def __post_init__(self) -> None:
        if self.task == "logistic" and self.noise > 1:
            raise ValueError(f"noise = {self.noise} is the share of labels flipped, so it must be from 0 to 1")

    def load(self, seed: int, dtype: str) -> Dataset:
        seed = seed if self.seed is None else self.seed
        return split_made(GaussianClients(self, seed, dtype), self.test, seed)
