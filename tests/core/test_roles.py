"""Roles of samples: models are evaluated on test samples alone, or on training samples alone."""

import numpy as np
import pytest

from mpifed.core.roles import Role, choose_role, left_out_note


@pytest.mark.parametrize(
    ("tests", "role"),
    [
        (None, Role("training", 0)),
        ([0, 0, 0], Role("training", 0)),
        ([1, 0, 7], Role("test", 1)),
        ([2, 1, 7], Role("test", 0)),
    ],
)
def test_one_test_sample_is_enough_for_all_numbers_to_be_over_test_samples(tests, role):
    assert choose_role(None if tests is None else np.array(tests)) == role


def test_a_sentence_counts_who_is_left_out():
    assert left_out_note(Role("test", 1), 3, ["accuracy"]) == [
        "1 of 3 clients has no test samples, and is left out of accuracy"
    ]
    assert left_out_note(Role("test", 1200), 3000, ["rmse", "mae"]) == [
        "1,200 of 3,000 clients have no test samples, and are left out of rmse, mae"
    ]
    assert left_out_note(Role("test", 0), 3, ["accuracy"]) == left_out_note(Role("test", 2), 3, []) == []
