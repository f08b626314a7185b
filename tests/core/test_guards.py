"""What a value is in a sentence, and which are arrays of real numbers."""

import numpy as np
import pytest

from mpifed.core.arrays import is_real_array
from mpifed.core.guards import describe_value

ROWS = np.ones((2, 3))
REAL = [(ROWS, "an array of shape (2, 3)"), (ROWS > 0, "an array bool of shape (2, 3)")]
OTHERS = [
    (None, "None"),
    (True, "the number True"),
    (1j, "the number 1j"),
    (np.float64(2), "a single number"),
    ("three", "a str"),
    (ROWS.tolist(), "a list of 2"),
    ({"a": 1}, "a dict of 1"),
    ((row for row in ROWS), "a generator"),
    (OSError, "a type"),
    (OSError(), "an OSError"),
    (ROWS * 1j, "an array complex128 of shape (2, 3)"),
    (ROWS.astype(object), "an array object of shape (2, 3)"),
    (np.array(["a"]), "an array <U1 of shape (1,)"),
    (np.ma.masked_less(ROWS, 0), "a MaskedArray of shape (2, 3)"),
]


@pytest.mark.parametrize(("value", "words"), REAL + OTHERS, ids=[words for _, words in REAL + OTHERS])
def test_a_value_is_told_by_its_type_and_shape(value, words):
    assert describe_value(value) == words
    assert is_real_array(value) == any(value is real for real, _ in REAL)
