"""Numbers of each client that are not added up: which a problem has, what hosts evaluate, and how it travels."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mpifed.core.arrays import is_real
from mpifed.core.errors import UserError
from mpifed.core.guards import shown
from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.federation.method import Method, Personalised
from mpifed.kernels.blocks import Block
from mpifed.problems.problem import Problem

HAS = "has "  # before the name of a number that some clients may lack: 1 where a client has it, else 0


def usual(problem: Problem) -> list[str]:
    """The numbers of each client that are evaluated where a study does not name any."""
    return [*(["accuracy"] if problem.classifies() else []), *problem.measured()]


def known(problem: Problem) -> list[str]:
    """All numbers of each client that a study may name."""
    return list(dict.fromkeys([*usual(problem), *problem.of_clients()]))


def asked_for(problem: Problem, wanted: bool | str | Sequence[str]) -> list[str]:
    """The numbers that ``evaluate.clients`` asks for; true: the usual ones."""
    if isinstance(wanted, bool):
        return usual(problem) if wanted else []
    return list(dict.fromkeys([wanted] if isinstance(wanted, str) else wanted))


def numbers(f: Local, X: Array, names: Sequence[str], label: str = "{}") -> dict[str, Array]:
    """The numbers of each client at X (n,) or (c, n), by ``label`` of the name: (c,) each, on the samples on which
    models are evaluated. One that it may lack travels as (value, has): behind it stands whether it has it.
    """
    problem = f.problem
    there = f.tested(lambda block, X: (f.xp.ones(len(block)),), 1, X)[0]  # 0: a client without such samples
    own = problem.of_clients()
    measured = dict(zip(problem.measured(), f.measure(X), strict=True)) if {*names} & {*problem.measured()} else {}
    found = {}
    for name in names:
        key = label.format(name)
        if name in own and name != "accuracy":
            (values,) = f.tested(one(name, own[name]), 1, X)
            lacking = f.xp.isnan(values)
            # 0, not NaN: of replies that are not finite a run says that its iterates diverge, and ends
            found[key] = f.xp.where(lacking, 0.0, values)
            found[HAS + key] = f.xp.astype(~lacking, values.dtype) * there
            continue
        found[key] = f.accuracy(X)[0] if name == "accuracy" else measured[name]
        if f.role.missing:
            found[HAS + key] = there
    return found


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


def with_lacking(rows: dict[str, Array]) -> dict[str, Array]:
    """The same numbers as they arrive, NaN where a client has none."""
    kept = {name: values for name, values in rows.items() if not name.startswith(HAS)}
    return {name: np.where(rows.get(HAS + name, 1) == 0, np.nan, values) for name, values in kept.items()}


class OfClients:
    """An evaluation of any method whose numbers ``names`` are not added up over clients."""

    def __init__(self, method: Method, names: Sequence[str]) -> None:
        self.method = method
        self.names = names

    def by_client(self, f: Local, client: Any, x: Array) -> dict[str, Array]:
        """The numbers of each client at the server's model x (n,), by name: (c,) each; of a method with personal models
        also the numbers at these, personal_….
        """
        found = numbers(f, x, self.names)
        if isinstance(self.method, Personalised):
            found |= numbers(f, self.method.personalised(f, client), self.names, "personal_{}")
        return found
