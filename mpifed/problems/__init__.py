"""Problems by their classes: ``mpifed.problems.Softmax(lam=0.01)``."""

from mpifed.core.members import members

__getattr__, __dir__ = members("mpifed.problems", "mpifed.problems.problem:Problem")
