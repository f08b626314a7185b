from mpifed.graphs.edge_file import EdgeFile as EdgeFile
from mpifed.graphs.families import Complete as Complete
from mpifed.graphs.families import ErdosRenyi as ErdosRenyi
from mpifed.graphs.families import Exponential as Exponential
from mpifed.graphs.families import Ring as Ring
from mpifed.graphs.families import Star as Star
from mpifed.graphs.families import Torus as Torus
