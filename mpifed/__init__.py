"""mpifed: federated optimisation on an MPI cluster.

The names in ``__all__`` are what users call; those for classes of one's own are in ``mpifed.extend``. What is in
neither is private and may change from one version to the next. Names are loaded when they are first used, so that
``import mpifed`` imports neither numpy nor MPI.

    >>> mpifed.__version__.count(".")
    2
    >>> mpifed.run(algorithm=mpifed.algorithms.FedAvg(k0=2), rounds=3).status
    'finished'
"""

import importlib

from mpifed.core.members import lazy_stub
from mpifed.mpi.launcher import read_launcher

__version__ = "0.1.0"
__getattr__, __dir__, __all__ = lazy_stub(__name__, __file__)
__all__ += ["__version__"]

# here, and not in a run: a program may fail on one rank before its first run
if (read_launcher()[0] or 1) > 1:
    importlib.import_module("mpifed.mpi.program_end").install(read_launcher()[1])
