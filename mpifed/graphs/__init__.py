"""Graphs by their classes: ``mpifed.graphs.Torus(rows=4)``."""

from typing import TYPE_CHECKING

from mpifed.core.members import members

if TYPE_CHECKING:
    from mpifed.graphs.edge_file import EdgeFile as EdgeFile
    from mpifed.graphs.erdos_renyi import ErdosRenyi as ErdosRenyi
    from mpifed.graphs.regular import Complete as Complete
    from mpifed.graphs.regular import Exponential as Exponential
    from mpifed.graphs.regular import Ring as Ring
    from mpifed.graphs.regular import Star as Star
    from mpifed.graphs.regular import Torus as Torus
else:
    __getattr__, __dir__ = members("mpifed.graphs", "mpifed.graphs.base:Graph")
