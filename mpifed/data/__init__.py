"""Data by their classes: ``mpifed.data.Digits(clients=20)``."""

from mpifed.core.members import lazy_members

__getattr__, __dir__ = lazy_members("mpifed.data", "mpifed.data.dataset:Data")
