"""Graphs by their classes: ``mpifed.graphs.Torus(rows=4)``."""

from mpifed.core.members import members

__getattr__, __dir__ = members("mpifed.graphs", "mpifed.graphs.graph:Graph")
