"""Checks of the values that users' data sources, data sets and partitions return."""

from typing import Any

import numpy as np

from mpifed.core.arrays import count_masked
from mpifed.core.component import fields_of
from mpifed.core.guards import Guard, InvalidReturn, UserClassError, describe_value
from mpifed.core.roles import suffix
from mpifed.core.typing import Array, SampleMatrix
from mpifed.data.dataset import Data, Dataset, DatasetWrapper


class CheckedDataset(DatasetWrapper):
    """A data set whose rows are checked when they are read: number of rows and columns, and labels."""

    def read_clients(self, lo: int, hi: int, role: str) -> tuple[SampleMatrix, Array]:
        pair = super().read_clients(lo, hi, role)
        sizes = self.sizes_of(role)
        assert sizes is not None
        d = int(sizes[lo:hi].sum())
        where = f"rows{suffix(role)}({lo}, {hi}) of {type(self.inner).__name__} returns"
        right = f"it must return X {(d, self.n)} and y ({d},)"
        if not is_pair(pair):
            raise UserClassError(f"{where} {describe_value(pair)}: {right}")
        for name, array, shape in zip("Xy", pair, ((d, self.n), (d,)), strict=True):
            if np.shape(array) != shape:
                raise UserClassError(f"{where} {name} as {describe_value(array)}: {right}")
        if count_masked(pair):
            raise UserClassError(f"{where} a masked array, of which some entries have no number: leave their rows out")
        return pair


def is_pair(value: Any) -> bool:
    # An array of two rows could be unpacked as well, but is not meant.
    return isinstance(value, tuple) and len(value) == 2


def check_load(source: Any, result: Any, seed: int, dtype: str) -> Dataset:
    """Return the data set that a user's ``load`` returned, with checks of its attributes now and of its rows later."""
    for name in ("m", "n", "sizes"):
        if not hasattr(result, name):
            raise InvalidReturn(f"returns a data set without {name}")
    for name, minimum in (("sizes", 1), ("sizes_test", 0), ("sizes_validation", 0)):
        sizes = getattr(result, name)
        if sizes is not None:
            check_counts(sizes, int(result.m), name, minimum)
            setattr(result, name, np.asarray(sizes))
    # A source may decide itself how many clients there are; without this it would silently ignore data.clients.
    cls: type[Data] = type(source)
    if source.clients not in (None, fields_of(cls)["clients"].default, result.m):
        raise InvalidReturn(f"returns a data set of {result.m} clients, and data.clients = {source.clients}")
    return CheckedDataset(result)


def check_counts(sizes: Any, m: int, name: str, minimum: int) -> None:
    """Raise InvalidReturn unless ``sizes`` (m,) are whole numbers of at least ``minimum``."""
    array = np.asarray(sizes)
    if array.shape != (m,) or array.dtype.kind not in "iu":
        raise InvalidReturn(
            f"returns {name} as {describe_value(sizes)}: they are whole numbers, one for each of the {m} clients"
        )
    if (array < minimum).any():
        raise InvalidReturn(
            f"returns {name} with {array.min()} samples for client {array.argmin()}: at least {minimum} is needed"
        )


def check_deal(partition: Any, result: Any, y: Array, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return the order of the rows and the sizes (m,) of the clients, as a user's partition returned them."""
    if not is_pair(result):
        raise InvalidReturn(
            f"returns {describe_value(result)}: it must return order, distinct row numbers, and sizes (m,)"
        )
    order, sizes = np.asarray(result[0]), np.asarray(result[1])
    check_counts(sizes, m, "sizes", 1)
    if order.ndim != 1 or order.dtype.kind not in "iu" or len(order) < sizes.sum():
        raise InvalidReturn(
            f"returns order as {describe_value(result[0])}: it must be {sizes.sum()} row numbers, as many as sizes say"
        )
    outside = order[(order < 0) | (order >= len(y))]
    if outside.size:
        raise InvalidReturn(f"returns row {outside[0]}, and there are {len(y)} rows")
    if np.bincount(order).max() > 1:
        raise InvalidReturn("returns a row twice: each row belongs to one client")
    return order[: sizes.sum()], sizes  # the other rows belong to no client


GUARDS: dict[str, dict[str, Guard]] = {"data": {"load": check_load}, "partitions": {"deal": check_deal}}
