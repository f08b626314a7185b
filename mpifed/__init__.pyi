"""The public names and where they come from. Type checkers read this file, and so does ``mpifed/__init__.py``."""

from mpifed import algorithms as algorithms
from mpifed import compressors as compressors
from mpifed import data as data
from mpifed import extend as extend
from mpifed import graphs as graphs
from mpifed import problems as problems
from mpifed import theory as theory
from mpifed.api.check import check as check
from mpifed.api.families import attacks as attacks
from mpifed.api.families import distributions as distributions
from mpifed.api.families import optimizers as optimizers
from mpifed.api.families import partitions as partitions
from mpifed.api.families import robust_means as robust_means
from mpifed.api.families import selections as selections
from mpifed.api.families import server_optimizers as server_optimizers
from mpifed.api.families import solvers as solvers
from mpifed.api.families import steps as steps
from mpifed.api.many import compare as compare
from mpifed.api.many import frame as frame
from mpifed.api.many import plot as plot
from mpifed.api.result import Result as Result
from mpifed.api.result import load as load
from mpifed.api.run import resume as resume
from mpifed.api.run import run as run
from mpifed.api.sweep import sweep as sweep
from mpifed.core.errors import RunError as RunError
from mpifed.core.errors import UserError as UserError
from mpifed.data.sources.arrays import arrays as arrays
from mpifed.data.sources.frame import table as table
from mpifed.data.sources.torch_dataset import datasets as datasets

__version__: str
