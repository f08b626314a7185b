"""What tests of problems share: clients with fewer and more samples than features, dense and sparse."""

import numpy as np
import pytest

from tests.helpers.problem_cases import dataset, one_block, problem_of


def pytest_collection_modifyitems(items):
    """Compiled kernels are for some problems only: the tests of the others are left out."""
    items[:] = [item for item in items if sensible(getattr(item, "callspec", None))]


def sensible(call):
    if call is None or call.params.get("kind") != "compiled":
        return True
    problem = problem_of(call.params["name"]) if "name" in call.params else call.params.get("problem")
    return problem is None or problem.compiles()


@pytest.fixture(params=["d_i < n", "d_i > n"])
def size(request):
    return 2 if request.param == "d_i < n" else 9


@pytest.fixture(params=["dense", "csr", pytest.param("compiled", marks=pytest.mark.fast)])
def kind(request):
    return request.param


@pytest.fixture
def features():
    return 6


@pytest.fixture
def case(name, size, kind, features):
    """The problem, a block and a point a client."""
    problem = problem_of(name)
    data = dataset(name, size, kind, n=features)
    X = np.random.default_rng(3).standard_normal((data.m, problem.dim(data)))
    return problem, one_block(problem, data), X
