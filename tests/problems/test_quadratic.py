"""Quadratic functions: value, curvature, and which data they take."""

import numpy as np
import pytest

import mpifed
from mpifed.core.errors import UserError
from mpifed.problems.quadratic import Quadratic
from tests.helpers.problem_cases import dataset


def test_a_quadratic_refuses_clients_that_have_no_square_matrix():
    with pytest.raises(ValueError, match="every client needs 6 rows, the rows of its matrix, but client 0 has 9"):
        Quadratic().dim(dataset("logistic", 9))


@pytest.mark.parametrize("size", [3, 6, 100])
def test_a_quadratic_has_no_samples_to_be_drawn(size):
    """On a "mini-batch" it is what it is, or the pair is refused before round one."""

    def model(batch_size):
        algorithm = {"name": "flame", "lr": 0.1, "batch_size": batch_size}
        data = {"name": "quadratic", "clients": 4, "features": 6}
        return mpifed.run({"data": data, "rounds": 3, "algorithm": algorithm}).x

    try:
        found = model(size)
    except UserError:
        return
    assert np.allclose(found, model(0))
