"""What a problem may define, and how a run asks for it."""

import numpy as np
import pytest

import mpifed
from mpifed import LinearModel, Problem, UserError
from mpifed.problems import LeastSquares

OPTIONAL = ("predict", "lipschitz", "convexity", "hessian", "majorizer_inverse", "clipped_grad")
DEFINED = {
    "least-squares": {"lipschitz", "hessian", "majorizer_inverse", "clipped_grad"},
    "logistic": set(OPTIONAL),
    "softmax": {"predict", "lipschitz", "convexity", "hessian"},
    "svm": {"predict"},
    "mlp": {"predict"},
    "quadratic": {"lipschitz", "convexity", "hessian", "majorizer_inverse"},
}


@pytest.mark.parametrize("name", DEFINED)
def test_a_problem_has_the_optional_methods_that_it_defines(name):
    problem = Problem.member(name, "problem")
    assert {optional for optional in OPTIONAL if problem.has(optional)} == DEFINED[name]
    assert not problem.has("no_such_method")


class Bowl(Problem):
    """f_i(x) = ‖x‖²/2, and no optional method."""

    def value_grad(self, block, X):
        X = np.broadcast_to(X, (len(block), X.shape[-1]))
        return np.vecdot(X, X) / 2, X.copy()


class Signs(Bowl):
    """The same with classes."""

    def predict(self, block, X):
        return np.zeros(block.b.shape)


@pytest.mark.parametrize("problem", [Bowl, Signs])
def test_a_problem_with_predict_is_evaluated_by_its_accuracy_too(problem):
    data = {"name": "synthetic", "clients": 3, "features": 4, "classes": 2, "least": 5, "most": 9}
    named = f"{__file__}:{problem.__name__}"
    result = mpifed.run({"problem": named, "algorithm": "fedavg", "data": data, "rounds": 1})
    assert ("accuracy" in result.rounds) == (problem is Signs)


class Flat(LeastSquares, tag="flat"):
    """A strongly convex loss that does not say how it bends."""

    bend = LinearModel.bend

    def weight(self, d):
        return np.ones(len(d))

    def convexity(self, block):
        return self.weight(block.d)


class Bent(Flat, tag="bent"):
    bend = LeastSquares.bend


def test_a_linear_model_has_a_hessian_where_it_has_the_second_derivative_of_its_loss():
    assert not LinearModel.has("hessian")
    assert not Flat.has("hessian")
    assert Bent.has("hessian")
    table = {"algorithm": "feddcd", "data": {"clients": 4, "features": 3}, "rounds": 1}
    with pytest.raises(UserError, match=r"cannot run on .*:Flat: it needs hessian \(products with ∇²f_i\), which"):
        mpifed.run(table | {"problem": f"{__file__}:Flat"})
    assert len(mpifed.run(table | {"problem": f"{__file__}:Bent"}).x) == 3
