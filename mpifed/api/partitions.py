"""Partitions by their classes: ``mpifed.partitions.Dirichlet(alpha=0.3)``."""

from __future__ import annotations

from mpifed.data.partition import Classes, Contiguous, Dirichlet, Iid, Shards, Sizes

__all__ = ["Classes", "Contiguous", "Dirichlet", "Iid", "Shards", "Sizes"]


def __dir__() -> list[str]:
    return __all__
