"""mpifed: federated optimisation on an MPI cluster.

The names in ``__all__`` are the public API; everything else is private and may change from one version to the next.
They are loaded when they are first used, so that ``import mpifed`` imports neither numpy nor MPI.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mpifed import algorithms as algorithms
    from mpifed import compressors as compressors
    from mpifed import data as data
    from mpifed import graphs as graphs
    from mpifed import problems as problems
    from mpifed.algorithms.base import Algorithm as Algorithm
    from mpifed.algorithms.graph_method import GraphMethod as GraphMethod
    from mpifed.algorithms.local_solvers import Solver as Solver
    from mpifed.algorithms.optimizers import Optimizer as Optimizer
    from mpifed.algorithms.server_optimizers import ServerOptimizer as ServerOptimizer
    from mpifed.algorithms.step_sizes import Step as Step
    from mpifed.api import distributions as distributions
    from mpifed.api import optimizers as optimizers
    from mpifed.api import partitions as partitions
    from mpifed.api import selections as selections
    from mpifed.api import server_optimizers as server_optimizers
    from mpifed.api import solvers as solvers
    from mpifed.api import steps as steps
    from mpifed.api.many import compare as compare
    from mpifed.api.many import frame as frame
    from mpifed.api.many import plot as plot
    from mpifed.api.result import Result as Result
    from mpifed.api.result import load as load
    from mpifed.api.run import resume as resume
    from mpifed.api.run import run as run
    from mpifed.api.sweep import sweep as sweep
    from mpifed.compressors.base import Compressor as Compressor
    from mpifed.core.errors import Trouble as Trouble
    from mpifed.core.errors import UserError as UserError
    from mpifed.core.streams import stream as stream
    from mpifed.core.typing import Array as Array
    from mpifed.data.base import Data as Data
    from mpifed.data.base import Dataset as Dataset
    from mpifed.data.blocks import Block as Block
    from mpifed.data.partition import Partition as Partition
    from mpifed.data.pool import Pool as Pool
    from mpifed.data.sources.arrays import arrays as arrays
    from mpifed.federation.local import Local as Local
    from mpifed.federation.participation.selection import Selection as Selection
    from mpifed.federation.participation.selection import Selector as Selector
    from mpifed.federation.peers.neighbourhood import Near as Near
    from mpifed.federation.peers.network import Network as Network
    from mpifed.federation.server import Federation as Federation
    from mpifed.federation.timing.distributions import Distribution as Distribution
    from mpifed.graphs.base import Edges as Edges
    from mpifed.graphs.base import Graph as Graph
    from mpifed.problems.base import Problem as Problem
    from mpifed.problems.linear_model import LinearModel as LinearModel
    from mpifed.theory.statements import Bound as Bound
    from mpifed.theory.statements import Certificate as Certificate
    from mpifed.theory.statements import Condition as Condition
    from mpifed.theory.statements import Known as Known

__version__ = "0.1.0"

PUBLIC = {
    "run": "mpifed.api.run:run",
    "resume": "mpifed.api.run:resume",
    "sweep": "mpifed.api.sweep:sweep",
    "frame": "mpifed.api.many:frame",
    "compare": "mpifed.api.many:compare",
    "plot": "mpifed.api.many:plot",
    "arrays": "mpifed.data.sources.arrays:arrays",
    "load": "mpifed.api.result:load",
    "Result": "mpifed.api.result:Result",
    "algorithms": "mpifed.algorithms",
    "problems": "mpifed.problems",
    "data": "mpifed.data",
    "partitions": "mpifed.api.partitions",
    "selections": "mpifed.api.selections",
    "steps": "mpifed.api.steps",
    "solvers": "mpifed.api.solvers",
    "optimizers": "mpifed.api.optimizers",
    "server_optimizers": "mpifed.api.server_optimizers",
    "compressors": "mpifed.compressors",
    "distributions": "mpifed.api.distributions",
    "graphs": "mpifed.graphs",
    "UserError": "mpifed.core.errors:UserError",
    "Trouble": "mpifed.core.errors:Trouble",
    "Algorithm": "mpifed.algorithms.base:Algorithm",
    "GraphMethod": "mpifed.algorithms.graph_method:GraphMethod",
    "Solver": "mpifed.algorithms.local_solvers:Solver",
    "Optimizer": "mpifed.algorithms.optimizers:Optimizer",
    "ServerOptimizer": "mpifed.algorithms.server_optimizers:ServerOptimizer",
    "Compressor": "mpifed.compressors.base:Compressor",
    "Step": "mpifed.algorithms.step_sizes:Step",
    "Problem": "mpifed.problems.base:Problem",
    "Block": "mpifed.data.blocks:Block",
    "LinearModel": "mpifed.problems.linear_model:LinearModel",
    "Data": "mpifed.data.base:Data",
    "Dataset": "mpifed.data.base:Dataset",
    "Pool": "mpifed.data.pool:Pool",
    "Partition": "mpifed.data.partition:Partition",
    "Selection": "mpifed.federation.participation.selection:Selection",
    "Selector": "mpifed.federation.participation.selection:Selector",
    "Distribution": "mpifed.federation.timing.distributions:Distribution",
    "Federation": "mpifed.federation.server:Federation",
    "Network": "mpifed.federation.peers.network:Network",
    "Near": "mpifed.federation.peers.neighbourhood:Near",
    "Graph": "mpifed.graphs.base:Graph",
    "Edges": "mpifed.graphs.base:Edges",
    "Local": "mpifed.federation.local:Local",
    "Certificate": "mpifed.theory.statements:Certificate",
    "Condition": "mpifed.theory.statements:Condition",
    "Bound": "mpifed.theory.statements:Bound",
    "Known": "mpifed.theory.statements:Known",
    "Array": "mpifed.core.typing:Array",
    "stream": "mpifed.core.streams:stream",
}
__all__ = ["__version__", *PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module 'mpifed' has no attribute {name!r}")
    module, _, attribute = PUBLIC[name].partition(":")
    found = importlib.import_module(module)
    found = getattr(found, attribute) if attribute else found
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return __all__
