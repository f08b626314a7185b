"""Numbers of each client that are not added up: which a problem has, and how they travel where a client has none."""

from collections.abc import Callable, Sequence

import numpy as np

from mpifed.core.arrays import is_real
from mpifed.core.errors import UserError
from mpifed.core.guards import shown
from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.kernels.blocks import Block
from mpifed.problems.base import Problem

LACKING = -(2.0**100)  # of a client that has no such number: replies must be finite


def usual(problem: Problem) -> list[str]:
    """The numbers of each client that are evaluated where a study does not name any."""
    return ["accuracy"] * problem.classifies() + [*problem.measured()]


def known(problem: Problem) -> list[str]:
    """All numbers of each client that a study may name."""
    return list(dict.fromkeys([*usual(problem), *problem.of_clients()]))


def named(problem: Problem, wanted: bool | str | Sequence[str]) -> list[str]:
    """The numbers that ``evaluate.clients`` asks for; true: the usual ones."""
    if isinstance(wanted, bool):
        return usual(problem) if wanted else []
    return list(dict.fromkeys([wanted] if isinstance(wanted, str) else wanted))


def numbers(f: Local, X: Array, names: Sequence[str]) -> dict[str, Array]:
    """The numbers of each client at X (n,) or (c, n), by name: (c,) each, on its test samples if it has any."""
    problem = f.problem
    own = problem.of_clients()
    found = {}
    for name in names:
        if name == "accuracy":
            found[name] = f.accuracy(X)[0]
        elif name in own:
            (values,) = f.tested(one(name, own[name]), 1, X)
            found[name] = f.xp.where(f.xp.isnan(values), LACKING, values)
    if any(name not in found for name in names):
        found |= zip(problem.measured(), f.measure(X), strict=True)
    return {name: found[name] for name in names}


def one(name: str, compute: Callable[[Block, Array], Array]) -> Callable[[Block, Array], tuple[Array]]:
    """The function of a problem for a number, whose values stand in a tuple. UserError where they are none."""

    def found(block: Block, X: Array) -> tuple[Array]:
        values = compute(block, X)
        if not is_real(values) or values.shape != (len(block),):
            raise UserError(
                f"the function that of_clients of the problem has for {name!r} returns {shown(values)}: it must return "
                f"an array (c,), here ({len(block)},)"
            )
        return (values,)

    return found


def told(rows: dict[str, Array]) -> dict[str, Array]:
    """The same numbers as they arrive, NaN where a client has none."""
    return {name: np.where(values == LACKING, np.nan, values) for name, values in rows.items()}
