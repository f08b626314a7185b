"""Distributions of a property over clients, such as their speed."""

import os
from abc import abstractmethod
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self

import numpy as np
from msgspec import Meta

from mpifed.core.component import Component, seconds_hint
from mpifed.core.errors import UserError
from mpifed.core.promises import Supports
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array

TEXTS = (".txt", ".csv")  # endings of files with the numbers of clients


class Distribution(Component):
    """Distribution of a property over clients: one number for all, one for each, or a table; drawn once for each.

    A list has a number for each client, and so has a text file (.txt or .csv).

        >>> class Two(mpifed.extend.Distribution):
        ...     def draw(self, rng, m):
        ...         return np.where(np.arange(m) % 2, 1e5, 1e4)
        >>> float(mpifed.run(system={"speed": Two()}, rounds=1).rounds["simulated_seconds"][-1])
        0.0147
    """

    choices: ClassVar[dict[str, str]] = {
        "constant": "mpifed.features.simulated_time.distributions:ConstantDistribution",
        "uniform": "mpifed.features.simulated_time.distributions:UniformDistribution",
        "lognormal": "mpifed.features.simulated_time.distributions:Lognormal",
        "exponential": "mpifed.features.simulated_time.distributions:ExponentialDistribution",
        "pareto": "mpifed.features.simulated_time.distributions:Pareto",
        "list": "mpifed.features.simulated_time.distributions:ListDistribution",
        "file": "mpifed.features.simulated_time.distributions:FileDistribution",
    }
    default: ClassVar[str] = "constant"
    kind: ClassVar[str] = "distributions"
    checks: ClassVar[str] = "mpifed.federation.selection_guards"

    @classmethod
    def build(cls, table: Any, path: str) -> Self:
        """Return the distribution that ``table`` names; a number is the constant, a list has one for each client."""
        seconds = seconds_hint(table, path)
        if seconds:
            raise UserError(f"{path} = {toml_value(table)} is wrong: it must be a number{seconds}")
        options: Any = None
        match table:
            case bool():
                pass
            case int() | float():
                options = {"value": table}
            case list():
                options = {"name": "list", "values": table}
            case str() if table.endswith(TEXTS):
                options = {"name": "file", "path": table}
            case str() | dict():
                options = table
        if options is None:
            raise UserError(
                f"{path} = {toml_value(table)} is wrong: it must be a number, a list with one for each client, or a "
                "table that names a distribution"
            )
        return super().build(options, path)

    @abstractmethod
    def draw(self, rng: np.random.Generator, m: int) -> Array:
        """Return the property of m clients: (m,)."""


class ConstantDistribution(Distribution, tag="constant"):
    """One value for all clients."""

    # A number that is given.
    supports = Supports.EVERYTHING

    value: Annotated[float, Meta(ge=0, description="the value")]

    def draw(self, rng: np.random.Generator, m: int) -> Array:
        return np.full(m, self.value)


class UniformDistribution(Distribution, tag="uniform"):
    """Uniform on [low, high)."""

    # Drawn from the seed, one number a client, without its data.
    supports = Supports.EVERYTHING

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
    supports = Supports.EVERYTHING

    median: Annotated[float, Meta(gt=0, description="median")]
    sigma: Annotated[float, Meta(ge=0, description="standard deviation σ of the natural logarithm")] = 1.0

    def draw(self, rng: np.random.Generator, m: int) -> Array:
        return self.median * np.exp(self.sigma * rng.standard_normal(m))


class ExponentialDistribution(Distribution, tag="exponential"):
    """Exponential with density exp(−v/mean)/mean."""

    # Drawn from the seed, one number a client, without its data.
    supports = Supports.EVERYTHING

    mean: Annotated[float, Meta(gt=0, description="mean")]

    def draw(self, rng: np.random.Generator, m: int) -> Array:
        return rng.exponential(self.mean, m)


class Pareto(Distribution, tag="pareto"):
    """Pareto of type I: P(V > v) = (scale/v)^shape, v >= scale; the mean is scale·shape/(shape − 1) if shape > 1."""

    # Drawn from the seed, one number a client, without its data.
    supports = Supports.EVERYTHING

    scale: Annotated[float, Meta(gt=0, description="least value")]
    shape: Annotated[float, Meta(gt=0, description="tail index; the smaller, the more extreme clients there are")] = 2.0

    def draw(self, rng: np.random.Generator, m: int) -> Array:
        return self.scale * (1 + rng.pareto(self.shape, m))


class ListDistribution(Distribution, tag="list"):
    """Numbers of the clients 0, 1, 2 …; a list alone stands for it."""

    # Numbers that are given.
    supports = Supports.EVERYTHING

    values: Annotated[list[float], Meta(min_length=1, description="a number for each client")]

    def draw(self, rng: np.random.Generator, m: int) -> Array:
        return np.array(self.values, float)


class FileDistribution(Distribution, tag="file"):
    """Numbers of the clients 0, 1, 2 … in a text file; its name alone, with .txt or .csv, stands for it."""

    # Numbers that are given.
    supports = Supports.EVERYTHING

    path: Annotated[str, Meta(description="text file (.txt or .csv): numbers between blanks, commas or ends of lines")]

    def __post_init__(self) -> None:
        if not self.path.endswith(TEXTS):
            raise ValueError(f"path = {self.path!r} is wrong: it must be a text file, which ends in .txt or .csv")

    def draw(self, rng: np.random.Generator, m: int) -> Array:
        try:
            words = Path(os.path.expanduser(self.path)).read_text("utf-8-sig").replace(",", " ").split()
            return np.array([float(word) for word in words])
        except OSError as error:
            raise ValueError(f"{self.path!r} cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise ValueError(f"{self.path!r} must have numbers only: {error}") from None
