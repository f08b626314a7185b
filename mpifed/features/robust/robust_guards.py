"""Guards of user-written attacks and robust means: their results have the right shapes and finite numbers."""

from typing import Any

import numpy as np

from mpifed.core.guards import Guard, require, require_array

FINITE = ": it must be an array of finite numbers"


def guard(position: int, first: int, words: str) -> Guard:
    """Return a guard: a result has the shape of the argument at ``position`` from axis ``first`` on, and is finite."""
    shaped = require_array(lambda component, *args: np.shape(args[position])[first:], words)
    finite = require(lambda result, *args: bool(np.isfinite(result).all()), FINITE)

    def check(component: Any, result: Any, *args: Any) -> Any:
        return finite(component, shaped(component, result, *args), *args)

    return check


GUARDS: dict[str, dict[str, Guard]] = {
    "attacks": {
        "alone": guard(0, 0, ": it must return what attackers send, (c, n) as their own changes"),
        "together": guard(0, 1, ": it must return what each attacker sends, a number for each column of the rows"),
        "change_labels": guard(0, 0, ": it must return a label in the place of each"),
    },
    "robust_means": {"mean": guard(0, 1, ": it must return a mean, a number for each column of the rows")},
}
