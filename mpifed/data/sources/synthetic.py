"""synthetic(alpha, beta): classes whose models and inputs differ from client to client."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from msgspec import Meta

from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.data.base import Clients, Data, Dataset, Test
from mpifed.data.split import split_made


class SyntheticClients(Dataset):
    """The samples of all clients; client k draws all of its own numbers from one stream."""

    def __init__(self, source: Synthetic, seed: int, dtype: str) -> None:
        self.source, self.seed, self.dtype = source, seed, dtype
        self.m, self.n, self.classes = source.clients, source.features, source.classes
        self.sizes = stream(seed, "data").integers(source.least, source.most, size=self.m, endpoint=True)
        self.deviation = np.arange(1, self.n + 1) ** -0.6  # the square root of Sigma_jj

    def rows(self, lo: int, hi: int) -> tuple[Array, Array]:
        ends = np.cumsum(self.sizes[lo:hi])
        d = int(ends[-1]) if hi > lo else 0
        X, y = np.empty((d, self.n), self.dtype), np.empty(d, self.dtype)
        for k, end in zip(range(lo, hi), ends, strict=True):
            X[end - self.sizes[k] : end], y[end - self.sizes[k] : end] = self.draw(k)
        return X, y

    def draw(self, k: int) -> tuple[Array, Array]:
        """x (d_k, n) and y (d_k,) of client k."""
        rng, common = stream(self.seed, "data", k + 1), stream(self.seed, "data", 0, 1)
        u, B = rng.normal(0, self.source.alpha), rng.normal(0, self.source.beta)
        if self.source.iid:
            rng_model, u, v = common, 0.0, np.zeros(self.n)
        else:
            rng_model, v = rng, rng.normal(B, 1, self.n)
        W, b = rng_model.normal(u, 1, (self.classes, self.n)), rng_model.normal(u, 1, self.classes)
        x = v + self.deviation * rng.standard_normal((int(self.sizes[k]), self.n))
        return x, np.argmax(x @ W.T + b, axis=1)


class Synthetic(Data, tag="synthetic"):
    """synthetic(alpha, beta), 60 features and 10 classes, made at each client from a model of its own (flame section V).

    Client k draws u_k ~ N(0, alpha), B_k ~ N(0, beta), W_k ~ N(u_k, 1) (classes, features), b_k ~ N(u_k, 1),
    v_k ~ N(B_k, 1); then x ~ N(v_k, Sigma) with Sigma_jj = j^-1.2 and y = argmax(W_k x + b_k). alpha and beta are
    standard deviations, the sizes uniform whole numbers (errata, FLAME). ``iid``: one W, b ~ N(0, 1) for all, v_k = 0.
    Source: Li et al., Federated optimization in heterogeneous networks (FedProx), 2020, section 5.1.
    """

    objective = "softmax"

    clients: Clients = 30
    alpha: Annotated[
        float, Meta(ge=0, description="how much the models of the clients differ, a standard deviation")
    ] = 0.5
    beta: Annotated[
        float, Meta(ge=0, description="how much the inputs of the clients differ, a standard deviation")
    ] = 0.5
    iid: Annotated[bool, Meta(description="one model and one law of the inputs for all clients")] = False
    features: Annotated[int, Meta(ge=1, le=10**8, description="number of features n")] = 60
    classes: Annotated[int, Meta(ge=2, le=10_000, description="number of classes")] = 10
    least: Annotated[int, Meta(ge=1, le=10**9, description="fewest samples of a client")] = 5000
    most: Annotated[int, Meta(ge=1, le=10**9, description="most samples of a client")] = 9999
    test: Test = 0.2

    def __post_init__(self) -> None:
        if self.least > self.most:
            raise ValueError(f"least = {self.least} is more than most = {self.most}")

    def load(self, seed: int, dtype: str) -> Dataset:
        seed = seed if self.seed is None else self.seed
        return split_made(SyntheticClients(self, seed, dtype), self.test, seed)
