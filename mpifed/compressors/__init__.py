"""Compressors by their classes: ``mpifed.compressors.TopK(k=8)``."""

from mpifed.core.members import lazy_members

__getattr__, __dir__ = lazy_members("mpifed.compressors", "mpifed.compressors.compressor:Compressor")
