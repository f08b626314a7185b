"""How a property differs among clients."""

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from msgspec import Meta

from mpifed.core.component import Component, in_seconds
from mpifed.core.errors import UserError
from mpifed.core.promises import Keeps
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array


class Distribution(Component):
    """How a property differs among clients: one number for all, or a table; drawn once for each client."""

    choices: ClassVar[dict[str, str]] = {
        "constant": "mpifed.features.simulated_time.distributions:Constant",
        "uniform": "mpifed.features.simulated_time.distributions:Uniform",
        "lognormal": "mpifed.features.simulated_time.distributions:Lognormal",
        "exponential": "mpifed.features.simulated_time.distributions:Exponential",
        "pareto": "mpifed.features.simulated_time.distributions:Pareto",
    }
    default: ClassVar[str] = "constant"
    kind: ClassVar[str] = "distributions"
    checks: ClassVar[str] = "mpifed.federation.selection_guards"

    @classmethod
    def build(cls, table: Any, path: str) -> Self:
        """The distribution that ``table`` names; a number is the constant."""
        if isinstance(table, bool) or not isinstance(table, int | float | str | dict):
            raise UserError(
                f"{path} = {toml_value(table)} is wrong: it must be a number, or a table that names a distribution"
            )
        seconds = in_seconds(table)
        if seconds:
            raise UserError(f"{path} = {toml_value(table)} is wrong: it must be a number{seconds}")
        return super().build({"value": table} if isinstance(table, int | float) else table, path)

    @abstractmethod
    def draw(self, rng: np.random.Generator, m: int) -> Array:
        """The property of m clients: (m,)."""


class Constant(Distribution, tag="constant"):
    """The same for every client."""

    # A number that is given.
    keeps = Keeps.EVERYTHING

    value: Annotated[float, Meta(ge=0, description="the value")]

    def draw(self, rng: np.random.Generator, m: int) -> Array:
        return np.full(m, self.value)


class Uniform(Distribution, tag="uniform"):
    """Uniform on [low, high)."""

    # Drawn from the seed, one number a client, without its data.
    keeps = Keeps.EVERYTHING

    low: Annotated[float, Meta(ge=0, description="least value")]
    high: Annotated[float, Meta(ge=0, description="largest value")]

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError(f"low = {self.low} is wrong: it must be at most high = {self.high}")

    def draw(self, rng: np.random.Generator, m: int) -> Array:
        return rng.uniform(self.low, self.high, m)


class Lognormal(Distribution, tag="lognormal"):
    """median·exp(sigma·N(0, 1)); the mean is median·exp(sigma²/2)."""

    # Drawn from the seed, one number a client, without its data.
    keeps = Keeps.EVERYTHING

    median: Annotated[float, Meta(gt=0, description="median")]
    sigma: Annotated[float, Meta(ge=0, description="standard deviation σ of the natural logarithm")] = 1.0

    def draw(self, rng: np.random.Generator, m: int) -> Array:
        return self.median * np.exp(self.sigma * rng.standard_normal(m))


class Exponential(Distribution, tag="exponential"):
    """Exponential with density exp(−v/mean)/mean."""

    # Drawn from the seed, one number a client, without its data.
    keeps = Keeps.EVERYTHING

    mean: Annotated[float, Meta(gt=0, description="mean")]

    def draw(self, rng: np.random.Generator, m: int) -> Array:
        return rng.exponential(self.mean, m)


class Pareto(Distribution, tag="pareto"):
    """Pareto of type I: P(V > v) = (scale/v)^shape, v >= scale; the mean is scale·shape/(shape − 1) if shape > 1."""

    # Drawn from the seed, one number a client, without its data.
    keeps = Keeps.EVERYTHING

    scale: Annotated[float, Meta(gt=0, description="least value")]
    shape: Annotated[float, Meta(gt=0, description="tail index; the smaller, the more extreme clients there are")] = 2.0

    def draw(self, rng: np.random.Generator, m: int) -> Array:
        return self.scale * (1 + rng.pareto(self.shape, m))
