"""What a problem may define, how a run asks for it, and a problem without samples."""

import numpy as np
import pytest

import mpifed
from mpifed import UserError
from mpifed.extend import LinearModel, Pool, Problem
from mpifed.problems import LeastSquares, Quadratic
from tests.helpers.problem_cases import dataset, one_block


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
    assert not LinearModel.has("no_such_method")
    assert not Flat.has("hessian")
    assert Bent.has("hessian")
    table = {"algorithm": "feddcd", "data": {"clients": 4, "features": 3}, "rounds": 1}
    with pytest.raises(UserError, match=r"cannot run on .*:Flat: it needs hessian \(products with ∇²f_i; a LinearMode"):
        mpifed.run(table | {"problem": f"{__file__}:Flat"})
    assert len(mpifed.run(table | {"problem": f"{__file__}:Bent"}).x) == 3


def test_a_quadratic_refuses_clients_that_have_no_square_or_symmetric_matrix():
    with pytest.raises(ValueError, match="every client needs 6 rows, the rows of its matrix, but client 0 has 9"):
        Quadratic().dim(dataset("logistic", 9))
    data = mpifed.arrays([[1.0, 0.0], [5.0, 1.0]], np.ones(2), 1, partition="contiguous")
    with pytest.raises(UserError, match=r"^problem 'quadratic' cannot use these data: .* must be a symmetric matrix$"):
        mpifed.run(data=data, problem="quadratic", rounds=1)


def test_r_of_a_quadratic_is_the_norm_of_its_matrix_where_it_bends_down_too():
    data = Pool(np.array([[1.0, 0.0], [0.0, -3.0], [2.0, 1.0], [1.0, 2.0]]), np.ones(4), None, np.array([2, 2]))
    block = one_block(Quadratic(), data)
    assert np.allclose(Quadratic().lipschitz(block), [3, 3])
    assert np.allclose(Quadratic().convexity(block), [-3, 1])
