"""A wrong value of a component that a program makes is a UserError; models are evaluated on one role of samples."""

import numpy as np
import pytest

import mpifed
from mpifed import compressors, data, distributions, partitions
from mpifed.checking.families import KINDS
from mpifed.core.component import fields_of
from mpifed.core.roles import Role, choose_role, left_out_note

WRONG = {
    "sizes = [1000, 0, 1000] is wrong: it must be a list of whole numbers": lambda: partitions.Sizes([1000, 0, 1000]),
    'Sizes.sizes = "x" is wrong: it must be a whole number or a list': lambda: partitions.Sizes("x"),
    "low = 2.0 is wrong: it must be at most high = 1.0": lambda: distributions.UniformDistribution(low=2.0, high=1.0),
    'UniformDistribution.low = "a" is wrong: it must be a number': lambda: distributions.UniformDistribution(
        low="a", high=1.0
    ),
    "k = -1 is wrong: it must be at least 1": lambda: compressors.TopK(k=-1),
    "least = 9 is more than most = 3": lambda: data.Synthetic(least=9, most=3),
    'k0 = 2 needs order = "adapt-combine"': lambda: mpifed.algorithms.DGD(k0=2),
}
OUTSIDE = {"cnn", "torch"}


@pytest.mark.parametrize("sentence", WRONG)
def test_a_wrong_value_of_an_object_is_a_user_error_with_a_sentence(sentence):
    with pytest.raises(mpifed.UserError) as mistake:
        WRONG[sentence]()
    assert str(mistake.value).startswith(sentence)


def test_in_a_study_the_same_sentence_names_the_table():
    with pytest.raises(mpifed.UserError, match=r"^data\.partition: sizes = \[3, 0\] is wrong"):
        mpifed.run(data={"name": "digits", "partition": {"name": "sizes", "sizes": [3, 0]}})


@pytest.mark.parametrize("kind", [kind for kind, family in KINDS.items() if set(family.choices) - OUTSIDE])
def test_no_value_of_any_option_makes_a_constructor_fail_in_another_way(kind):
    refused = made = 0
    for name in set(KINDS[kind].choices) - OUTSIDE:
        cls = KINDS[kind].member(name, kind)
        fields = fields_of(cls).values()
        needed = {field.name: 1 for field in fields if field.required}
        for field in fields:
            for value in ("no such", -1, [1, 0], None, float("nan")):
                try:
                    cls(**(needed | {field.name: value}))
                    made += 1
                except mpifed.UserError:
                    refused += 1
    assert made + refused or kind == "graphs"


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
