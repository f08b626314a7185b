"""Bases and types for classes of one's own: methods, problems, data, selections, plug-ins.

``mpifed`` is what users call; step sizes, solvers and other building blocks of methods are in
``mpifed.algorithms.parts``, certificates in ``mpifed.theory``. Names are loaded when they are first used.

    >>> def longest(X: mpifed.extend.Array) -> float:  # Array: an array of numpy
    ...     return max(map(np.linalg.norm, X))
"""

from mpifed.core.members import lazy_stub

__getattr__, __dir__, __all__ = lazy_stub(__name__, __file__)
