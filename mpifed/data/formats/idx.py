"""IDX, the format of MNIST: a magic number, the length of each dimension, then one byte per value."""

import gzip
import math
from pathlib import Path
from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.data.formats.on_disk import at_most, reading
from mpifed.data.pool import WhenRead

LARGEST = 1 << 31  # bytes of values; MNIST has 47 million
UNSIGNED_BYTE = 8


def read_idx(path: Path, dimensions: int) -> Array:
    """The unsigned bytes of an IDX file, plain or gzip, as an array with this number of ``dimensions``.

    Memory is allocated only for bytes that the file holds. UserError where the magic number is wrong or where the file
    holds fewer or more bytes than its lengths declare. Format: yann.lecun.com/exdb/mnist.
    """
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    opener: Any = gzip.open if packed else open
    with reading(path, "IDX"), opener(path, "rb") as file:
        head = file.read(4 + 4 * dimensions)
        if head[:4] != bytes([0, 0, UNSIGNED_BYTE, dimensions]):
            kind = f"an IDX file of unsigned bytes in {dimensions} dimensions"
            raise UserError(f"{path} is not {kind}: it begins with {head[:4].hex()}, not 000008{dimensions:02x}")
        if len(head) < 4 + 4 * dimensions:
            raise UserError(f"{path} ends in its header: {len(head)} bytes are too few for {dimensions} dimensions")
        shape = tuple(int(length) for length in np.frombuffer(head, ">u4", offset=4))
        size = math.prod(shape)
        declared = f"{path} declares {' x '.join(map(str, shape))} bytes"
        if size > LARGEST:
            raise UserError(f"{declared}: more than {LARGEST >> 30} GiB is not supported")
        data = at_most(file, size + 1)
    if len(data) != size:
        raise UserError(f"{declared}, but holds {len(data) if len(data) < size else 'more'}")
    return np.frombuffer(data, dtype=np.uint8).reshape(shape)


def pixels(X: Array, mean: float, deviation: float) -> WhenRead:
    """Images X (d, n) of bytes; rows that are read become numbers (x/255 - mean)/deviation.

    Until then they stay bytes, which take an eighth of the memory of float64 on every rank.
    """
    return WhenRead(X, levels(mean, deviation).take)


def levels(mean: float, deviation: float) -> Array:
    """The number (x/255 - mean)/deviation for each byte x: (256,)."""
    return (np.arange(256) / 255 - mean) / deviation
