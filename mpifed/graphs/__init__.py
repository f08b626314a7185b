"""Graphs by their classes: ``mpifed.graphs.Torus(rows=4)``."""

from mpifed.core.members import lazy_members

__getattr__, __dir__ = lazy_members("mpifed.graphs", "mpifed.graphs.graph:Graph")
