"""Data by their classes: ``mpifed.data.Digits(clients=20)``."""

from mpifed.core.members import members

__getattr__, __dir__ = members("mpifed.data", "mpifed.data.dataset:Data")
