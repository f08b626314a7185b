from mpifed.graphs.edge_file import EdgeFile as EdgeFile
from mpifed.graphs.erdos_renyi import ErdosRenyi as ErdosRenyi
from mpifed.graphs.regular import Complete as Complete
from mpifed.graphs.regular import Exponential as Exponential
from mpifed.graphs.regular import Ring as Ring
from mpifed.graphs.regular import Star as Star
from mpifed.graphs.regular import Torus as Torus
