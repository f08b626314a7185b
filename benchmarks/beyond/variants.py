"""Data with a few much harder clients, speeds with a slow tail, and FedGiA with a penalty that balances residuals."""

from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.algorithms.fedgia import FedGiA
from mpifed.data.sources.quadratic import Quadratics, RandomQuadratic
from mpifed.extend import Array, Dataset, Federation, Local
from mpifed.features.simulated_time.distributions import Distribution


class Uneven(Quadratics):
    """Random matrices; those of the first ``hard`` clients have eigenvalues up to ``hardest``."""

    def largest(self, i: int) -> float:
        return self.source.hardest if i < self.source.hard else self.source.L


class HardQuadratic(RandomQuadratic):
    """Random quadratic functions with eigenvalues in [mu, L], of the first ``hard`` clients in [mu, hardest]."""

    hard: Annotated[int, Meta(ge=0, description="clients with larger eigenvalues")] = 1
    hardest: Annotated[float, Meta(gt=0, description="their largest eigenvalue")] = 200.0

    def load(self, seed: int, dtype: str) -> Dataset:
        return Uneven(self, seed, dtype)


class SlowTail(Distribution):
    """Speeds of which the time that a sample takes is Pareto with shape 1/sigma: from sigma = 1 on it has no mean.

    median·(2U)^sigma with U uniform on (0, 1]; σ is the standard deviation of the logarithm, as of ``lognormal``.
    """

    median: Annotated[float, Meta(gt=0, description="median")]
    sigma: Annotated[float, Meta(ge=0, description="standard deviation σ of the natural logarithm")] = 1.0

    def draw(self, rng: np.random.Generator, m: int) -> Array:
        return self.median * (2 * (1 - rng.random(m))) ** self.sigma


class Balance(NamedTuple):
    """The state of the server of Balanced."""

    x: Array  # (n,) model
    sigma: float  # penalty
    r: float  # max r_i


class Balanced(FedGiA):
    """FedGiA whose σ balances residuals, as in section 3.4.1 of Boyd et al. (2011) and in FedADMM-InSa.

    d² = Σ ‖x_i − x‖², one number more in each upload, and p = u √m ‖x⁺ − x‖, u = t or, with unit = "beta", mσ = t r:
    σ doubles where p < d/mu and halves where d < p/mu.
    """

    unit: Literal["t", "beta"] = "t"
    mu: Annotated[float, Meta(ge=1, description="how far p and d may be apart")] = 5.0

    def message_size(self, n: int) -> tuple[float, float]:
        return n, n + 1

    def init_server(self, fed: Federation) -> Any:
        server = super().init_server(fed)
        return Balance(server.x, server.sigma, float(fed.max(self.smoothness)))

    def round(self, fed: Federation, server: Any) -> Any:
        x, sigma = server.x, server.sigma
        z = fed.mean(self.and_residual, x, sigma, each=fed.mask(fed.select(x)))
        d, p = (z[-1] * fed.m) ** 0.5, sigma * fed.m**1.5 * float(np.linalg.norm(z[:-1] - x))
        if self.unit == "t":
            p /= server.r
        factor = 1.0
        if p < d / self.mu:
            factor = 2.0
        elif d < p / self.mu:
            factor = 0.5
        return Balance(z[:-1], sigma * factor, server.r)

    def and_residual(self, f: Local, client: Any, x: Array, sigma: float, selected: Array) -> tuple[Any, Array]:
        new: Any = self.update(f, client, x, sigma, selected)
        client, z = new
        away = z - client.pi / sigma - x
        return client, np.hstack([z, np.vecdot(away, away)[:, None]])


class Rooted(Distribution):
    """Client i = 1, 2 … takes √i times as long as the first: speeds value/√i."""

    value: Annotated[float, Meta(gt=0, description="of the first client")]

    def draw(self, rng: np.random.Generator, m: int) -> Array:
        return self.value / np.sqrt(np.arange(1, m + 1))
