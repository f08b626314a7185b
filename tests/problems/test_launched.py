"""Which problems a GPU's kernels know well enough to take whole local steps."""

import numpy as np
import pytest

from mpifed.data.blocks import dense_block
from mpifed.problems.base import Problem
from mpifed.problems.launched import form_of
from mpifed.problems.logistic import Logistic
from mpifed.problems.softmax import Softmax

FORMS = {
    "least-squares": ("linear", "ridge", False),
    "logistic": ("logistic", "ridge", False),
    "nonconvex-logistic": ("logistic", "bounded", False),
    "softmax": ("softmax", "ridge", True),
}


def built(name, **options):
    return Problem.build({"name": name} | options, "problem")


@pytest.mark.parametrize("name", FORMS)
def test_a_problem_says_its_residual_and_its_penalty(name):
    assert form_of(built(name))[:3] == FORMS[name]


def test_factors_are_those_of_the_regulariser_for_each_client():
    block = dense_block(np.array([2, 4]), 3, "float64")
    assert form_of(built("logistic", mu=0.5)).factors(block).tolist() == [0.25, 0.125]
    assert form_of(built("logistic", mu=0.5, regulariser="whole")).factors(block).tolist() == [0.5, 0.5]
    assert form_of(built("softmax", lam=0.5)).factors(block).tolist() == [0.5, 0.5]
    assert form_of(built("least-squares")).factors(block).tolist() == [0, 0]


@pytest.mark.parametrize("name", sorted(set(Problem.choices) - set(FORMS) - {"torch"}))
def test_other_problems_have_none(name):
    assert form_of(built(name)) is None


class Penalised(Logistic, tag="own-penalty"):
    def penalty_grad(self, X):
        return X**3


class Graded(Logistic, tag="own-gradient"):
    def grad(self, block, X):
        return 2 * super().grad(block, X)


class Sloped(Softmax, tag="own-slopes"):
    def slopes(self, Z, b):
        return 2 * super().slopes(Z, b)


class Weighted(Logistic, tag="own-weight"):
    def weight(self, d):
        return 7 + 0 * d


@pytest.mark.parametrize("kind", [Penalised, Graded, Sloped])
def test_a_problem_of_a_users_own_with_another_gradient_has_none(kind):
    assert form_of(kind()) is None


def test_a_factor_of_a_users_own_is_used():
    block = dense_block(np.array([2, 4]), 3, "float64")
    assert form_of(Weighted()).factors(block).tolist() == [7, 7]
