"""synthetic(alpha, beta) of FedProx: labels from a linear model and inputs that both differ between clients."""

from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from mpifed.core.promises import Keeps, keeping
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.data.dataset import ClientByClient, Clients, Data, Dataset, Test
from mpifed.data.pool import split_generated


class SyntheticClients(ClientByClient):
    """The samples of all clients; each client has its own random stream."""

    def __init__(self, source: Any, seed: int, dtype: str) -> None:
        super().__init__(source, seed, dtype)
        self.n = source.features
        self.classes = source.classes
        self.sizes = stream(self.seed, "data").integers(source.least, source.most, size=self.m, endpoint=True)
        self.deviation = np.arange(1, self.n + 1) ** -0.6  # the square root of Sigma_jj

    def draw(self, k: int) -> tuple[Array, Array]:
        # u and B are drawn in any case, so that what a client draws after them is the same with iid and without.
        rng = own = stream(self.seed, "data", k + 1)
        u = rng.normal(0, self.source.alpha)
        B = rng.normal(0, self.source.beta)
        if self.source.iid:
            own = stream(self.seed, "data", 0, 1)  # of the model: the same for all clients
            u = 0.0
        v = np.zeros(self.n) if self.source.iid else rng.normal(B, 1, self.n)
        W = own.normal(u, 1, (self.classes, self.n))
        b = own.normal(u, 1, self.classes)
        x = v + self.deviation * rng.standard_normal((int(self.sizes[k]), self.n))
        return x, np.argmax(x @ W.T + b, axis=1)


class Synthetic(Data, tag="synthetic"):
    """synthetic(alpha, beta), 60 features and 10 classes, labelled at each client by its own model (flame section V).

    Client k draws u_k ~ N(0, alpha), B_k ~ N(0, beta), W_k ~ N(u_k, 1) (classes, features), b_k ~ N(u_k, 1) (classes,)
    and v_k ~ N(B_k, 1) (features,). Its samples are x ~ N(v_k, Sigma), Sigma_jj = j^-1.2, with y = argmax(W_k x + b_k).
    alpha and beta are standard deviations; sizes are uniform whole numbers from least to most (errata, FLAME).
    ``iid``: all clients share W, b ~ N(0, 1), and v_k = 0.
    Source: Li et al., Federated Optimization in Heterogeneous Networks (FedProx), 2020, arXiv 1812.06127, section 5.1;
    FLAME, 2023, arXiv 2311.06756.
    """

    # Generated client by client from the seed: nobody's samples, and the same on every rank.
    keeps = Keeps.EVERYTHING
    options = keeping("alpha", "beta", "iid", "features", "classes", "least", "most", "test")

    objective = "softmax"

    clients: Clients = 30
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
    test: Test = 0.2

    def __post_init__(self) -> None:
        if self.least > self.most:
            raise ValueError(f"least = {self.least} is more than most = {self.most}")

    def load(self, seed: int, dtype: str) -> Dataset:
        return split_generated(SyntheticClients(self, seed, dtype), self.test)
