"""Many clients of equal size, generated fast, to measure how runs scale."""

from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from mpifed.core.promises import Supports, supporting
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.data.dataset import Data, Dataset, GeneratedDataset
from mpifed.data.split import TestAmount, ValidationAmount, split_source

CHUNK = 1 << 15  # numbers of X from one stream; a new stream costs as much as drawing a thousand numbers


class GaussianClients(GeneratedDataset):
    """The samples of all clients, drawn in full chunks of ``per`` clients: client i is in chunk i // per."""

    def __init__(self, source: Any, seed: int, dtype: str) -> None:
        super().__init__(source, seed, dtype)
        self.n = source.features
        self.D = source.samples
        self.classes = 2 if source.task == "logistic" else 0
        self.sizes = np.full(self.m, self.D, dtype=np.int64)
        self.per = max(1, CHUNK // (self.D * self.n))  # clients per chunk
        self.w = stream(self.seed, "data").standard_normal(self.n)

    def rows(self, lo: int, hi: int) -> tuple[Array, Array]:
        X = np.empty((hi - lo, self.D, self.n), self.dtype)
        y = np.empty((hi - lo, self.D), self.dtype)
        scratch = np.empty((self.per * self.D, self.n))
        # Chunks are drawn in full, also where some clients are not needed: numbers must not depend on lo, hi or m.
        for chunk in range(lo // self.per, -(-hi // self.per)):
            start = chunk * self.per
            a = max(lo, start)
            b = min(hi, start + self.per)
            A, labels = self.draw(chunk, scratch)
            X[a - lo : b - lo] = A.reshape(-1, self.D, self.n)[a - start : b - start]
            y[a - lo : b - lo] = labels.reshape(-1, self.D)[a - start : b - start]
        return X.reshape(-1, self.n), y.ravel()

    def draw(self, chunk: int, scratch: Array) -> tuple[Array, Array]:
        """Draw A (per·D, n), stored in ``scratch``, and the labels (per·D,) of all clients of a chunk."""
        rng = stream(self.seed, "data", chunk + 1)
        rng.standard_normal(out=scratch)
        scratch /= np.sqrt(self.n)
        scores = scratch @ self.w
        if self.source.task != "logistic":
            numbers = scores + self.source.noise * rng.standard_normal(len(scratch))
            return scratch, np.exp(numbers) if self.source.task == "positive" else numbers
        return scratch, (scores > 0) ^ (rng.random(len(scratch)) < self.source.noise)


class Gaussian(Data, tag="gaussian"):
    """Clients of equal size with standard normal features over √n and labels from one random hyperplane, 10 % flipped.

    A ~ N(0, 1/n) (samples, features), w ~ N(0, I). task "logistic": b = 1 where ⟨a, w⟩ > 0, else 0, flipped with
    probability ``noise``; "linear": b = ⟨a, w⟩ + noise·N(0, 1); "positive": b = e to this number. A million clients of
    20 x 20 take about ten seconds.
    """

    # Generated client by client from the seed: no private samples, and the same ones on every rank.
    supports = Supports.EVERYTHING
    options = supporting("samples", "features", "task", "noise", "test", "validation")

    objective = "logistic"

    samples: Annotated[int, Meta(ge=1, le=10**9, description="samples of each client")] = 20
    features: Annotated[int, Meta(ge=1, le=10**8, description="number of features n")] = 20
    task: Annotated[
        Literal["logistic", "linear", "positive"], Meta(description="labels 0 and 1, real numbers, or numbers above 0")
    ] = "logistic"
    noise: Annotated[
        float, Meta(ge=0, description="share of labels flipped (logistic), standard deviation of the noise (else)")
    ] = 0.1
    test: TestAmount = 0.0
    validation: ValidationAmount = 0.0

    def __post_init__(self) -> None:
        if self.task == "logistic" and self.noise > 1:
            raise ValueError(f"noise = {self.noise} is the share of labels flipped: it must be between 0 and 1")

    def load(self, seed: int, dtype: str) -> Dataset:
        return split_source(GaussianClients(self, seed, dtype), self)
