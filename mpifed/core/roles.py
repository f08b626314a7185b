"""Roles of samples: each number over samples is over test samples or over training samples, never both."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from mpifed.core.typing import Array

TRAINING = "training"
TEST = "test"


class Role(NamedTuple):
    """The role ``name`` of the samples on which models are evaluated, and the number of clients that have none."""

    name: str = TRAINING
    missing: int = 0


def choose_role(sizes_test: Array | None) -> Role:
    """Choose test samples, of which clients have ``sizes_test`` (c,), or training samples if there are none."""
    # never both, because a model is right more often on samples that it was trained on
    if sizes_test is None or not np.any(sizes_test):
        return Role()
    return Role(TEST, int(np.count_nonzero(np.asarray(sizes_test) == 0)))


def left_out_note(role: Role, m: int, names: Iterable[str], whose: str = "clients") -> list[str]:
    """Return a sentence that says how many of m clients are left out of the numbers ``names``; none if all are in."""
    named = ", ".join(names)
    if not role.missing or not named:
        return []
    have, are = ("has", "is") if role.missing == 1 else ("have", "are")
    return [f"{role.missing:,} of {m:,} {whose} {have} no {role.name} samples, and {are} left out of {named}"]
