"""HDF5 files that anybody may have made: what is read lies in the file itself and is as large as it says."""

import h5py
import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.core.hdf5 import datasets, entry, values


@pytest.fixture
def file(tmp_path):
    with h5py.File(tmp_path / "other.h5", "w") as other:
        other["secret"] = [1, 2, 3]
    with h5py.File(tmp_path / "file.h5", "w") as made:
        made["numbers"] = np.arange(4.0)
        made["words"] = ["a", "é"]
        group = made.create_group("group")
        group["numbers"], group["empty"] = [1], h5py.Empty("f")
        group.create_group("inner")
        made["soft"] = h5py.SoftLink("/numbers")
        made["outside"] = h5py.ExternalLink("other.h5", "secret")
        layout = h5py.VirtualLayout((3,), "i8")
        layout[:] = h5py.VirtualSource("other.h5", "secret", (3,))
        made.create_virtual_dataset("virtual", layout)
    with h5py.File(tmp_path / "file.h5") as opened:
        yield opened


def test_arrays_and_texts_are_read_whole_without_groups_and_what_leads_elsewhere_is_refused(file):
    assert values(entry(file, "numbers", "file"), "numbers").tolist() == [0, 1, 2, 3]
    assert values(entry(file, "words", "file"), "words").tolist() == ["a", "é"]
    assert entry(file, "missing", "file") is None
    for name in ("soft", "outside", "virtual"):
        with pytest.raises(UserError, match=f"^{name} of file "):
            entry(file, name, "file")
    assert [name for name, _ in datasets(entry(file, "group", "file"), "file")] == ["numbers"]
    with pytest.raises(UserError, match="of file is a link"):
        dict(datasets(file, "file"))
