"""MATLAB files of version 5 to 7.3; only arrays of numbers are read. Those of 7.3 are HDF5 files.

scipy's reader is not used because some damaged files make it crash. Format: MathWorks, "MAT-File Format", chapter
"Level 5 MAT-File Format".
"""

import struct
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.memory import check_declared, check_memory, size_of
from mpifed.core.typing import Array
from mpifed.data.formats.on_disk import from_columns, open_h5

# numpy's types by the number of an element's type, and by that of a variable's class
TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}
MATRIX = 14  # types of an element: a variable, or one that is compressed
PACKED = 15
SPARSE = 5  # class of a sparse matrix
COMPLEX = 0x800
HEADER = 128  # bytes of a file before its first variable
FRONT = 1 << 12  # first bytes of a variable, which hold its class, shape and name
WIDEST = 8  # bytes of a number


class Front(NamedTuple):
    """The description of a variable that comes before its numbers."""

    kind: int
    real: bool
    most: int  # number of entries that a sparse matrix has room for
    shape: tuple[int, ...]
    name: str

    def size(self) -> int:
        return WIDEST * (2 * self.most + self.shape[-1] + 1) if self.kind == SPARSE else size_of(self.shape, WIDEST)


def read_mat(path: Path) -> dict[str, Any]:
    """The variables of a MATLAB file by name, sparse ones as CSR, and an empty object array for all but numbers.

    ValueError, struct.error or zlib.error where the file is damaged.
    """
    with path.open("rb") as file:
        begin = file.read(HEADER)
    order = {b"IM": "<", b"MI": ">"}.get(begin[126:], "")
    if not order:
        raise ValueError("it is not a MATLAB file of version 5 to 7.3")
    if struct.unpack(f"{order}H", begin[124:126])[0] >> 8 > 1:
        return open_h5(path)  # what MATLAB 7.3 writes is HDF5 behind this header
    check_memory(path.stat().st_size, f"{path}")
    content = memoryview(path.read_bytes())
    found = {}
    for kind, part in elements(content[HEADER:], order):
        # The front alone at first: what it declares is checked before memory is taken for the rest.
        unpacker = zlib.decompressobj() if kind == PACKED else None
        head = memoryview(unpacker.decompress(part, FRONT))[8:] if unpacker else part
        if kind not in (MATRIX, PACKED):
            raise ValueError(f"there is an element of type {kind} among its variables")
        front = front_of(head, order)
        if front.kind not in (*CLASSES, SPARSE):
            found[front.name] = np.zeros(0, object)
            continue
        what = f"{front.name} of {path}"
        check_declared(front.size(), len(part), what)
        check_memory(front.size(), what)
        if unpacker:
            part = memoryview(bytes(head) + unpacker.decompress(unpacker.unconsumed_tail, 2 * front.size() + FRONT))
            if not unpacker.eof:
                raise ValueError(f"{front.name} is longer or shorter than it says")
        found[front.name] = array_of(front, part, order)
    return found


def elements(content: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    offset = 0
    while offset < len(content):
        kind, size = struct.unpack_from(f"{order}II", content, offset)
        first = offset + 8
        # Elements begin at multiples of eight bytes, except those behind a compressed one.
        offset = first + size + (-size % 8 if kind != PACKED else 0)
        if kind >> 16:  # a small element: size and type share a word, and the bytes follow
            size = kind >> 16
            kind &= 0xFFFF
            offset = first
            first -= 4
        if first + size > len(content):
            raise ValueError("it ends early")
        yield kind, content[first : first + size]


def front_of(head: memoryview, order: str) -> Front:
    """The description of a variable from its first bytes."""
    (_, flags), (_, shape), (_, name) = islice(elements(head, order), 3)
    word, most = struct.unpack_from(f"{order}II", flags)
    dimensions = tuple(np.frombuffer(shape, f"{order}i4").tolist())
    if len(dimensions) < 2 or min(dimensions) < 0:
        raise ValueError(f"it has a variable of shape {dimensions}")
    return Front(word & 0xFF, not word & COMPLEX, most, dimensions, bytes(name).decode("latin-1"))


def array_of(front: Front, part: memoryview, order: str) -> Any:
    """The array in the elements after the description; zeros where the numbers are complex."""
    if not front.real:
        return np.zeros(front.shape if front.size() < FRONT else 0, complex)
    rest = [numbers(kind, data, order) for kind, data in islice(elements(part, order), 3, None)]
    if front.kind != SPARSE:
        (values,) = rest
        with np.errstate(invalid="ignore"):
            return values.astype(CLASSES[front.kind]).reshape(front.shape, order="F")
    rows, starts, values = rest
    return from_columns(front.name, values, rows, starts, front.shape)


def numbers(kind: int, data: memoryview, order: str) -> Array:
    if kind not in TYPES:
        raise ValueError(f"it has numbers of type {kind}")
    return np.frombuffer(data, order + TYPES[kind])
