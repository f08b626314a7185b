"""Weight decay of weights alone; the problem says before round one which parameters are weights."""

from typing import Any, TypeVar

import msgspec
import numpy as np

from mpifed.algorithms.parts.optimizers import WeightDecayOptimizer
from mpifed.core.component import fields_of
from mpifed.core.errors import UserError
from mpifed.data.dataset import Dataset
from mpifed.problems.problem import Problem

AnyAlgorithm = TypeVar("AnyAlgorithm", bound=msgspec.Struct)


def restrict_decay(algorithm: AnyAlgorithm, problem: Problem, data: Dataset, dtype: str) -> AnyAlgorithm:
    """Return the method with optimisers that decay only weights; the same object where no option asks for it.

    Their ``weight_decay`` is λ of each parameter (n,) as ``dtype``, 0 for those that do not decay. UserError if the
    problem does not tell.
    """
    changes: dict[str, Any] = {}
    for field in fields_of(type(algorithm)).values():
        optimizer = getattr(algorithm, field.name)
        if isinstance(optimizer, WeightDecayOptimizer) and optimizer.decay == "weights" and optimizer.weight_decay:
            # once, before round one: which parameters are weights depends on all data, and clients see only a part
            masked = (optimizer.weight_decay * weight_mask(problem, data)).astype(dtype)
            changes[field.name] = msgspec.structs.replace(optimizer, weight_decay=masked)
    return msgspec.structs.replace(algorithm, **changes) if changes else algorithm


def weight_mask(problem: Problem, data: Dataset) -> np.ndarray[Any, Any]:
    """Return which parameters of a problem are weights: (n,) bool."""
    with problem.raise_user_errors():
        mask = np.asarray(problem.decay_mask(data))
        n = problem.dim(data)
    if mask.shape != (n,) or mask.dtype != bool:
        raise UserError(
            f"decays of {problem.label()} returns {mask.dtype} {mask.shape}: it says of each of the {n} parameters "
            "whether it decays, so it must be an array of bool with that many entries"
        )
    return mask
