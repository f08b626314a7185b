"""IDX, the format of MNIST: a magic number, the lengths of the dimensions, then one byte a value."""

from __future__ import annotations

import gzip
import math
from pathlib import Path
from typing import IO, Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.data.formats.on_disk import reading

LARGEST = 1 << 31  # bytes of values; MNIST has 47 million
UNSIGNED_BYTE = 8


def read_idx(path: Path, dimensions: int) -> Array:
    """The unsigned bytes of an IDX file, plain or gzip, an array with so many dimensions.

    Nothing is read or allocated beyond what the file really holds. UserError where the magic number is another, and
    where the file holds less or more than its lengths say. Source: yann.lecun.com/exdb/mnist.
    """
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    opener: Any = gzip.open if packed else open
    with reading(path, "IDX"), opener(path, "rb") as file:
        head = file.read(4 + 4 * dimensions)
        if head[:4] != bytes([0, 0, UNSIGNED_BYTE, dimensions]):
            raise UserError(
                f"{path} is no IDX file of unsigned bytes in {dimensions} dimensions: it begins with "
                f"{head[:4].hex()}, not 000008{dimensions:02x}"
            )
        if len(head) < 4 + 4 * dimensions:
            raise UserError(f"{path} ends inside its head: {dimensions} dimensions have more than {len(head)} bytes")
        shape = tuple(int(length) for length in np.frombuffer(head, ">u4", offset=4))
        size = math.prod(shape)
        told = f"{path} says it holds {' x '.join(map(str, shape))} bytes"
        if size > LARGEST:
            raise UserError(f"{told}: more than {LARGEST >> 30} GiB cannot be right")
        data = at_most(file, size + 1)
    if len(data) != size:
        raise UserError(f"{told}, but there are {len(data) if len(data) < size else 'more'}")
    return np.frombuffer(data, dtype=np.uint8).reshape(shape)


def at_most(file: IO[bytes], size: int) -> bytearray:
    """The next ``size`` bytes, or what there is of them."""
    data = bytearray()
    while len(data) < size and (block := file.read(min(1 << 20, size - len(data)))):
        data += block
    return data


class Pixels:
    """Images X (d, n) of bytes, of which the rows asked for become numbers (x/255 - mean)/deviation.

    They stay bytes until then, for as numbers they would take eight times the memory on every rank.
    """

    dtype = np.dtype(np.float64)

    def __init__(self, X: Array, mean: float, deviation: float) -> None:
        self.X, self.shape = X, X.shape
        self.level = levels(mean, deviation)

    def __getitem__(self, index: Any) -> Array:
        return self.level[self.X[index]]


def levels(mean: float, deviation: float) -> Array:
    """What each of the bytes 0 … 255 becomes."""
    return (np.arange(256) / 255 - mean) / deviation
