"""Data of which a few clients are much harder than the others."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from mpifed import Array, Dataset
from mpifed.data.sources.quadratic import Quadratics, RandomQuadratic


class Uneven(Quadratics):
    """Random matrices; those of the first ``hard`` clients have eigenvalues up to ``hardest``."""

    def __init__(self, data: HardQuadratic, seed: int, dtype: str) -> None:
        super().__init__(data.clients, data.features, data.mu, data.L, seed, dtype)
        self.usual, self.hard, self.hardest = data.L, data.hard, data.hardest

    def draw(self, i: int) -> tuple[Array, Array]:
        self.L = self.hardest if i < self.hard else self.usual
        return super().draw(i)


class HardQuadratic(RandomQuadratic):
    """Random quadratic functions with eigenvalues in [mu, L], of the first ``hard`` clients in [mu, hardest]."""

    hard: Annotated[int, Meta(ge=0, description="clients with larger eigenvalues")] = 1
    hardest: Annotated[float, Meta(gt=0, description="their largest eigenvalue")] = 200.0

    def load(self, seed: int, dtype: str) -> Dataset:
        return Uneven(self, seed if self.seed is None else self.seed, dtype)
