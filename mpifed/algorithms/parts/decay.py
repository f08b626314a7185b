"""Weight decay of weights alone: the problem tells which parameters these are, before round one."""

from typing import Any, TypeVar

import msgspec
import numpy as np

from mpifed.algorithms.parts.optimizers import Decaying
from mpifed.core.component import fields_of
from mpifed.core.errors import UserError
from mpifed.data.dataset import Dataset
from mpifed.problems.problem import Problem

Method = TypeVar("Method", bound=msgspec.Struct)


def decayed(algorithm: Method, problem: Problem, data: Dataset, dtype: str) -> Method:
    """The method whose optimisers know which parameters decay; itself where all of them do, or none.

    There ``weight_decay`` is λ for each parameter (n,) as ``dtype``, 0 for those that do not decay. UserError where the
    problem does not tell.
    """
    changes: dict[str, Any] = {}
    for field in fields_of(type(algorithm)).values():
        part = getattr(algorithm, field.name)
        if isinstance(part, Decaying) and part.decay == "weights" and part.weight_decay:
            # once, before round one: which parameters are weights follows from the data, which clients see in part only
            own = (part.weight_decay * decaying(problem, data)).astype(dtype)
            changes[field.name] = msgspec.structs.replace(part, weight_decay=own)
    return msgspec.structs.replace(algorithm, **changes) if changes else algorithm


def decaying(problem: Problem, data: Dataset) -> np.ndarray[Any, Any]:
    """Which parameters of a problem are weights: (n,) bool."""
    with problem.refusing():
        found = np.asarray(problem.decays(data))
        n = problem.dim(data)
    if found.shape != (n,) or found.dtype != bool:
        raise UserError(
            f"decays of {problem.label()} returns {found.dtype} {found.shape}: it says of each of the {n} parameters "
            "whether it decays, so it must be an array of bool with that many entries"
        )
    return found
