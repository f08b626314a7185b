"""Reader of arrays of numbers in MATLAB files of version 5 to 7.3, of which those of 7.3 are HDF5 files.

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

from mpifed.core.memory import bytes_of_shape, check_declared_size, check_memory
from mpifed.core.typing import Array
from mpifed.data.formats.hdf5 import csr_from_columns, open_h5

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
    """Header of a variable, which comes before its numbers."""

    cls: int  # class of MATLAB
    real: bool
    capacity: int  # number of entries that a sparse matrix has room for
    shape: tuple[int, ...]
    name: str

    def size(self) -> int:
        """Return the bytes that the variable takes in memory, at most."""
        return (
            WIDEST * (2 * self.capacity + self.shape[-1] + 1)
            if self.cls == SPARSE
            else bytes_of_shape(self.shape, WIDEST)
        )


def read_mat(path: Path) -> dict[str, Any]:
    """Return the variables of a MATLAB file by name: arrays, CSR matrices, an empty object array for other types.

    Raises ValueError, struct.error or zlib.error if the file is damaged.
    """
    with path.open("rb") as file:
        begin = file.read(HEADER)
    order = {b"IM": "<", b"MI": ">"}.get(begin[126:], "")
    if not order:
        raise ValueError("it is not a MATLAB file of version 5 to 7.3")
    if struct.unpack(f"{order}H", begin[124:126])[0] >> 8 > 1:
        return open_h5(path)  # MATLAB 7.3 writes HDF5 behind this header
    check_memory(path.stat().st_size, f"{path}")
    content = memoryview(path.read_bytes())
    variables = {}
    for code, part in read_elements(content[HEADER:], order):
        # The front alone at first: the size that it declares is checked before memory is taken for the rest.
        unpacker = zlib.decompressobj() if code == PACKED else None
        head = memoryview(unpacker.decompress(part, FRONT))[8:] if unpacker else part
        if code not in (MATRIX, PACKED):
            raise ValueError(f"there is an element of type {code} among its variables")
        front = read_front(head, order)
        if front.cls not in (*CLASSES, SPARSE):
            variables[front.name] = np.zeros(0, object)
            continue
        label = f"{front.name} of {path}"
        check_declared_size(front.size(), len(part), label)
        check_memory(front.size(), label)
        if unpacker:
            part = memoryview(bytes(head) + unpacker.decompress(unpacker.unconsumed_tail, 2 * front.size() + FRONT))
            if not unpacker.eof:
                raise ValueError(f"{front.name} is longer or shorter than it says")
        variables[front.name] = read_array(front, part, order)
    return variables


def read_elements(content: memoryview, order: str) -> Iterator[tuple[int, memoryview]]:
    """Yield the type and the bytes of each element."""
    offset = 0
    while offset < len(content):
        code, size = struct.unpack_from(f"{order}II", content, offset)
        first = offset + 8
        # Elements begin at multiples of eight bytes, except those behind a compressed one.
        offset = first + size + (-size % 8 if code != PACKED else 0)
        if code >> 16:  # a small element: size and type share a word, and the bytes follow
            size = code >> 16
            code &= 0xFFFF
            offset = first
            first -= 4
        if first + size > len(content):
            raise ValueError("it ends early")
        yield code, content[first : first + size]


def read_front(head: memoryview, order: str) -> Front:
    """Return the header of a variable from its first bytes."""
    (_, flags), (_, shape), (_, name) = islice(read_elements(head, order), 3)
    word, capacity = struct.unpack_from(f"{order}II", flags)
    dimensions = tuple(np.frombuffer(shape, f"{order}i4").tolist())
    if len(dimensions) < 2 or min(dimensions) < 0:
        raise ValueError(f"it has a variable of shape {dimensions}")
    return Front(word & 0xFF, not word & COMPLEX, capacity, dimensions, bytes(name).decode("latin-1"))


def read_array(front: Front, part: memoryview, order: str) -> Any:
    """Return the array in the elements after the header; complex zeros if its numbers are complex."""
    if not front.real:
        return np.zeros(front.shape if front.size() < FRONT else 0, complex)
    rest = [read_numbers(code, data, order) for code, data in islice(read_elements(part, order), 3, None)]
    if front.cls != SPARSE:
        (values,) = rest
        with np.errstate(invalid="ignore"):
            return values.astype(CLASSES[front.cls]).reshape(front.shape, order="F")
    rows, starts, values = rest
    return csr_from_columns(front.name, values, rows, starts, front.shape)


def read_numbers(code: int, data: memoryview, order: str) -> Array:
    if code not in TYPES:
        raise ValueError(f"it has numbers of type {code}")
    return np.frombuffer(data, order + TYPES[code])
