"""IDX files; those in tests/hostile are refused in the same words."""

import gzip
import tracemalloc

import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.data.formats.idx import read_idx
from tests.helpers.image_files import idx

BYTES = np.arange(24).reshape(2, 3, 4)
HOSTILE = {
    "another magic number": (b"\x00\x00\x0d\x03" + idx(BYTES)[4:], r"begins with 00000d03, not 00000803"),
    "labels in the place of images": (idx(np.zeros(5)), r"begins with 00000801"),
    "nothing": (b"", r"begins with , not"),
    "more than it says": (idx(BYTES) + b"\0", r"declares 2 x 3 x 4 bytes, but holds more"),
    "a gigabyte declared": (idx(BYTES, (1024, 1024, 1024)), r"1024 x 1024 x 1024 bytes, but holds 24"),
    "terabytes declared": (idx(BYTES, (2**32 - 1, 2**32 - 1, 1)), r"more than 2 GiB is not supported"),
    "a product that overflows": (idx(BYTES, (2**31, 2**31, 4)), r"more than 2 GiB is not supported"),
}


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_idx_files_are_refused_without_a_large_allocation(tmp_path, case, packed):
    content, sentence = HOSTILE[case]
    path = tmp_path / "x-idx3-ubyte"
    path.write_bytes(gzip.compress(content) if packed else content)
    tracemalloc.start()
    with pytest.raises(UserError, match=sentence) as caught:
        read_idx(path, 3)
    assert tracemalloc.get_traced_memory()[1] < 1 << 24
    tracemalloc.stop()
    assert "\n" not in str(caught.value)
