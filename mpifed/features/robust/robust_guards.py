"""Attacks and robust means of a user's own: arrays of the shapes that they got, with finite numbers."""

from typing import Any

import numpy as np

from mpifed.core.guards import Guard, array, returns

FINITE = ": it must be an array of finite numbers"


def guard(position: int, first: int, words: str) -> Guard:
    """What a method returns has the shape of its argument at a position, from the axis ``first`` on."""
    shaped = array(lambda component, *args: np.shape(args[position])[first:], words)
    finite = returns(lambda result, *args: bool(np.isfinite(result).all()), FINITE)

    def both(component: Any, result: Any, *args: Any) -> Any:
        return finite(component, shaped(component, result, *args), *args)

    return both


GUARDS: dict[str, dict[str, Guard]] = {
    "attacks": {
        "alone": guard(0, 0, ": it must return what attackers send, (c, n) as their own changes"),
        "together": guard(0, 1, ": it must return what each attacker sends, a number for each column of the rows"),
        "changed": guard(0, 0, ": it must return a label in the place of each"),
    },
    "robust_means": {"mean": guard(0, 1, ": it must return a mean, a number for each column of the rows")},
}
