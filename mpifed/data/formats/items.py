"""Items (sample, label) of datasets as arrays: one row a sample."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.memory import check_memory
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array


class Part(NamedTuple):
    """Items of a dataset, at ``positions``; ``name`` is what messages call it."""

    dataset: Any
    positions: Sequence[int]
    name: str


def read(parts: Sequence[Part], first: Array) -> tuple[Array, Array]:
    """X (d, n) and y (d,): the samples of all parts, flattened, of the type and shape of the sample ``first``."""
    total = sum(len(part.positions) for part in parts)
    check_memory(total * first.nbytes, f"the {total:,} samples of the datasets")
    X = np.empty((total, first.size), first.dtype)
    y: list[Any] = []
    for part in parts:
        for j in part.positions:
            sample, label = item(part, int(j))
            if sample.shape != first.shape or sample.dtype != first.dtype:
                one, other = (f"{found.dtype} {toml_value(found.shape)}" for found in (sample, first))
                raise UserError(
                    f"item {j} of {part.name} is {one}, and the first sample {other}: all have one shape and type"
                )
            X[len(y)] = sample.ravel()
            y.append(label)
    return X, np.array(y)


def first(parts: Sequence[Part]) -> Array:
    """The first sample. UserError where there is none, or where it is another one when it is read again."""
    for part in parts:
        for j in part.positions[:1]:
            sample, again = (item(part, int(j))[0] for _ in range(2))
            if again.shape != sample.shape or again.tobytes() != sample.tobytes():
                raise UserError(
                    f"item {j} of {part.name} is another one when it is read again, so ranks would have other data: "
                    "leave random transforms out"
                )
            return sample
    raise UserError("there is no sample")


def item(part: Part, j: int) -> tuple[Array, Any]:
    """Sample and label at a position. UserError where they are none."""
    try:
        sample, label = part.dataset[j]
        sample, label = np.asarray(sample), np.asarray(label)
    except Exception as error:  # the user's code may raise anything
        raise UserError(f"item {j} of {part.name} cannot be read as (sample, label): {told(error)}") from None
    if sample.dtype.kind not in "biuf" or label.size != 1:
        found = f"a sample of type {sample.dtype} and {label.size} labels"
        raise UserError(f"item {j} of {part.name} has {found}: it must be numbers and one label")
    return sample, label.item()


def told(error: BaseException) -> str:
    """Type and message of an error, on one line."""
    return f"{type(error).__name__}: {error}".splitlines()[0].removesuffix(": ")
