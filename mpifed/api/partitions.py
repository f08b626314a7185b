"""Partitions by their classes: ``mpifed.partitions.Dirichlet(alpha=0.3)``."""

from mpifed.data.partition import Classes, Contiguous, Dirichlet, Iid, Shards, Sizes

__all__ = ["Classes", "Contiguous", "Dirichlet", "Iid", "Shards", "Sizes"]
