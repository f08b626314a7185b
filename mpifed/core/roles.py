"""Roles of samples: each number over samples is over those of one role, and no other role stands in for it."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from mpifed.core.typing import Array

TRAINING = "training"
TEST = "test"
VALIDATION = "validation"
HELD_OUT = (TEST, VALIDATION)  # in the order in which they are drawn
VALIDATED = "validation_"  # prefix of numbers over validation samples


class Role(NamedTuple):
    """The role ``name`` of the samples of a number, and how many clients have no such samples."""

    name: str = TRAINING
    missing: int = 0


def suffix(role: str) -> str:
    """Return the end of the names of a role's arrays: X, X_test, X_validation."""
    return "" if role == TRAINING else f"_{role}"


def choose_role(sizes_test: Array | None) -> Role:
    """Choose test samples, of which clients have ``sizes_test`` (c,), or training samples if there are none."""
    # never both, because a model is right more often on samples that it was trained on
    return find_role(TEST, sizes_test) or Role()


def find_role(name: str, sizes: Array | None) -> Role | None:
    """Return the role of samples of which clients have ``sizes`` (c,), or None if there are none."""
    if sizes is None or not np.any(sizes):
        return None
    return Role(name, int(np.count_nonzero(np.asarray(sizes) == 0)))


def left_out_note(role: Role, m: int, names: Iterable[str], whose: str = "clients") -> list[str]:
    """Return a sentence that says how many of m clients are left out of the numbers ``names``; none if all are in."""
    named = ", ".join(names)
    if not role.missing or not named:
        return []
    have, are = ("has", "is") if role.missing == 1 else ("have", "are")
    return [f"{role.missing:,} of {m:,} {whose} {have} no {role.name} samples, and {are} left out of {named}"]
