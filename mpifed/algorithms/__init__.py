"""Algorithms by their classes: ``mpifed.algorithms.FedGiA(k0=5)``."""

from mpifed.core.members import lazy_members

__getattr__, __dir__ = lazy_members("mpifed.algorithms", "mpifed.algorithms.bases.algorithm:Algorithm")
