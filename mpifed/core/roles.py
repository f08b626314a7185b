"""Roles of samples: numbers over samples are over those of one role, test samples or training samples."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from mpifed.core.typing import Array

TRAINING = "training"
TEST = "test"


class Role(NamedTuple):
    """The samples on which models are evaluated, by ``name``, and how many clients have none and are left out."""

    name: str = TRAINING
    missing: int = 0


def role_of(sizes_test: Array | None) -> Role:
    """Test samples, of which clients have ``sizes_test`` (c,), or training samples where nobody has a test sample."""
    # never a mix of both: a model is right more often on samples that it was trained on
    if sizes_test is None or not np.any(sizes_test):
        return Role()
    return Role(TEST, int(np.count_nonzero(np.asarray(sizes_test) == 0)))


def left_out(role: Role, m: int, names: Iterable[str], whose: str = "clients") -> list[str]:
    """A sentence that says how many of m clients are not in the numbers ``names``; none where all are."""
    named = ", ".join(names)
    if not role.missing or not named:
        return []
    have, are = ("has", "is") if role.missing == 1 else ("have", "are")
    return [f"{role.missing:,} of {m:,} {whose} {have} no {role.name} samples, and {are} left out of {named}"]
