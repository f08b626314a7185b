"""Algorithms by their classes: ``mpifed.algorithms.FedGiA(k0=5)``."""

from mpifed.core.members import members

__getattr__, __dir__ = members("mpifed.algorithms", "mpifed.algorithms.bases.algorithm:Algorithm")
