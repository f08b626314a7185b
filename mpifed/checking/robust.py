"""Checks of attacks and robust means: calls with random rows."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mpifed.checking.case import Case
from mpifed.checking.parts import by_row, refuse_others, rows_of
from mpifed.checking.table import Check, Found, place
from mpifed.core.streams import streams
from mpifed.core.typing import Array

UPLOADS = 11  # rows of a mean


def by_itself(case: Case, rows: Array, computed: Callable[[Array], Array], name: str) -> str:
    """Each column of what is computed of rows has the same bits where the others are not there."""
    whole = computed(rows.copy())
    singles = (computed(rows[:, j : j + 1].copy())[0] for j in range(rows.shape[1]))
    refuse_others(case, whole, singles, "column", "columns are computed on several ranks, each on its own", name)
    return f"each of {rows.shape[1]} columns alone: the same bits"


def uploads_of(case: Case) -> Array:
    """Random rows (UPLOADS, N)."""
    rows = rows_of(case)
    return np.concatenate([rows, -rows[::-1], rows[:1] / 2])[:UPLOADS]


def alone(case: Case) -> str:
    attack: Any = case.component
    seed = case.config.seed
    return by_row(case, lambda rows, ids: attack.alone(rows, lambda: streams(seed, "check", ids, 4)), "alone")


def together(case: Case) -> str:
    attack: Any = case.component
    return by_itself(case, uploads_of(case), lambda rows: attack.together(rows, 2), "together")


def alike(case: Case) -> str:
    """Where all uploads are the same, so is their mean."""
    robust: Any = case.component
    row = rows_of(case)[0]
    # a mean that moves slowly is where it should be already
    found = robust.mean(np.tile(row, (UPLOADS, 1)), UPLOADS, row)
    apart = float(np.abs(found - row).max() / np.abs(row).max())
    if apart > 1e-9:
        raise Found(f"the mean of {UPLOADS} equal uploads is off by {apart:.2g}", place(robust, "mean"))
    return f"the mean of equal uploads is off by {apart:.2g}"


def columns(case: Case) -> str:
    robust: Any = case.component
    if not robust.by_column:
        return "it takes all columns together"
    return by_itself(case, uploads_of(case), lambda rows: robust.mean(rows, len(rows), 0.0), "mean")


CHECKS: dict[str, list[Check]] = {
    "attacks": [("a row alone", alone), ("a column alone", together)],
    "robust_means": [("equal uploads", alike), ("a column alone", columns)],
}
