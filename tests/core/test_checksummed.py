"""Checksummed files are read as they were written, or refused."""

import numpy as np
import pytest

from mpifed.core import checksummed
from mpifed.core.errors import UserError


def test_files_are_read_as_they_were_written_and_refused_where_a_byte_or_the_name_has_changed(tmp_path):
    path = tmp_path / "state.npz"
    arrays = {"x": np.arange(5.0), "k": np.array(3)}
    checksummed.write(path, arrays)
    read = checksummed.read(path)
    assert read.keys() == arrays.keys()
    assert all(np.array_equal(read[name], arrays[name]) for name in arrays)
    content = path.read_bytes()
    path.write_bytes(content[:40] + bytes([content[40] ^ 1]) + content[41:])
    with pytest.raises(UserError, match=r"state\.npz is damaged or missing \(its checksum is wrong\)"):
        checksummed.read(path)
    path.write_bytes(content)
    path.rename(tmp_path / "other.npz")
    with pytest.raises(UserError, match=r"other\.npz is damaged or missing"):
        checksummed.read(tmp_path / "other.npz")
    with pytest.raises(UserError, match=r"state\.npz is damaged or missing"):
        checksummed.read(path)
    assert checksummed.read_text(tmp_path / "state.json") is None
