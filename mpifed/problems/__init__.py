"""Problems by their classes: ``mpifed.problems.Softmax(lam=0.01)``."""

from mpifed.core.members import lazy_members

__getattr__, __dir__ = lazy_members("mpifed.problems", "mpifed.problems.problem:Problem")
