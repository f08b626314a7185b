"""Problems by their classes: ``mpifed.problems.Softmax(lam=0.01)``."""

from typing import TYPE_CHECKING

from mpifed.core.members import members

if TYPE_CHECKING:
    from mpifed.problems.cnn import CNN as CNN
    from mpifed.problems.cox import Cox as Cox
    from mpifed.problems.gamma import Gamma as Gamma
    from mpifed.problems.huber import Huber as Huber
    from mpifed.problems.least_squares import LeastSquares as LeastSquares
    from mpifed.problems.logistic import Logistic as Logistic
    from mpifed.problems.mlp import MLP as MLP
    from mpifed.problems.nonconvex_logistic import NonconvexLogistic as NonconvexLogistic
    from mpifed.problems.poisson import Poisson as Poisson
    from mpifed.problems.quadratic import Quadratic as Quadratic
    from mpifed.problems.softmax import Softmax as Softmax
    from mpifed.problems.svm import SVM as SVM
    from mpifed.problems.torch_module import TorchModule as TorchModule
else:
    __getattr__, __dir__ = members("mpifed.problems", "mpifed.problems.base:Problem")
