"""Compressors by their classes: ``mpifed.compressors.TopK(k=8)``."""

from mpifed.core.members import members

__getattr__, __dir__ = members("mpifed.compressors", "mpifed.compressors.compressor:Compressor")
