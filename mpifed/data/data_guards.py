"""Data and partitions of a user's own: how many clients there are, and whether their samples fit."""

from typing import Any

import numpy as np

from mpifed.core.arrays import masked
from mpifed.core.component import fields_of
from mpifed.core.guards import Guard, Slip, Wrong, instance, shown
from mpifed.core.typing import Array, Matrix
from mpifed.data.dataset import Data, Dataset, Wrapped

DATASET = instance(Dataset, ": it must return a mpifed.Dataset")


class Checked(Wrapped):
    """A data set of which every part that is read has the rows, columns and labels that it says."""

    def part(self, lo: int, hi: int, test: bool) -> tuple[Matrix, Array]:
        found = super().part(lo, hi, test)
        sizes = self.sizes_test if test else self.sizes
        assert sizes is not None
        wanted = (int(sizes[lo:hi].sum()), self.n)
        where = f"{'rows_test' if test else 'rows'}({lo}, {hi}) of {type(self.whole).__name__} returns"
        right = f"it must return X {wanted} and y ({wanted[0]},)"
        if not is_pair(found):
            raise Slip(f"{where} {shown(found)}: {right}")
        X, y = found
        if np.ndim(X) != 2 or X.shape != wanted:
            raise Slip(f"{where} X as {shown(X)}: {right}")
        if masked([X, y]):
            raise Slip(f"{where} a masked array, of which some entries have no number: leave their rows out")
        if np.shape(y) != wanted[:1]:
            raise Slip(f"{where} y as {shown(y)}: {right}")
        return X, y


def is_pair(found: Any) -> bool:
    # A tuple and no array of two rows, which would be taken apart just as well.
    return isinstance(found, tuple) and len(found) == 2


def load(source: Any, result: Any, seed: int, dtype: str) -> Dataset:
    DATASET(source, result)
    for name in ("m", "n", "sizes"):
        if not hasattr(result, name):
            raise Wrong(f"returns a data set without {name}")
    for name, least in (("sizes", 1), ("sizes_test", 0)):
        sizes = getattr(result, name)
        if sizes is not None:
            counts(sizes, int(result.m), name, least)
            setattr(result, name, np.asarray(sizes))
    # A source may say itself how many clients there are; that it ignores a wish would go unnoticed.
    kind: type[Data] = type(source)
    default = fields_of(kind)["clients"].default
    if source.clients is not None and source.clients not in (default, result.m):
        raise Wrong(f"returns a data set of {result.m} clients, and data.clients = {source.clients}")
    return Checked(result)


def counts(sizes: Any, m: int, name: str, least: int) -> None:
    """Wrong where ``sizes`` are no numbers of samples of m clients."""
    array = np.asarray(sizes)
    if array.shape != (m,) or array.dtype.kind not in "iu":
        raise Wrong(f"returns {name} as {shown(sizes)}: they are whole numbers, one for each of the {m} clients")
    if (array < least).any():
        raise Wrong(
            f"returns {name} with {array.min()} samples for client {array.argmin()}: at least {least} is needed"
        )


def deal(partition: Any, result: Any, y: Array, m: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """The order of the rows and how many each client owns."""
    if not is_pair(result):
        raise Wrong(f"returns {shown(result)}: it must return order, distinct row numbers, and sizes (m,)")
    order, sizes = np.asarray(result[0]), np.asarray(result[1])
    counts(sizes, m, "sizes", 1)
    if order.ndim != 1 or order.dtype.kind not in "iu" or len(order) < sizes.sum():
        raise Wrong(f"returns order as {shown(result[0])}: it must be {sizes.sum()} row numbers, as many as sizes say")
    if len(order) and (order.min() < 0 or order.max() >= len(y)):
        raise Wrong(f"returns row {order.max() if order.min() >= 0 else order.min()}, and there are {len(y)} rows")
    if np.bincount(order).max() > 1:
        raise Wrong("returns a row twice: each row belongs to one client")
    return order[: sizes.sum()], sizes  # what is left over belongs to no client


GUARDS: dict[str, dict[str, Guard]] = {"data": {"load": load}, "partitions": {"deal": deal}}
