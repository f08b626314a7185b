"""Files appear when they are complete, are read as they were written or refused, and lead nowhere else."""

import os

import h5py
import numpy as np
import pytest

from mpifed.core import checksummed
from mpifed.core.errors import UserError
from mpifed.core.files import atomic_file, claim_name, open_file, release_name, replace_file
from mpifed.core.hdf5 import get_entry, iterate_datasets, read_dataset
from tests.helpers import hostile_files as hostile
from tests.helpers.commands import within_seconds


@pytest.fixture
def path(tmp_path):
    (tmp_path / "out.txt").write_text("old")
    return tmp_path / "out.txt"


def test_an_atomic_file_appears_when_it_is_complete(path):
    with atomic_file(path) as part:
        part.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    with atomic_file(path) as first, atomic_file(path) as second:  # two writers of one name
        first.write_text("first")
        second.write_text("second")
    assert path.read_text() == "first"  # the last one to finish
    assert os.listdir(path.parent) == ["out.txt"]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file_and_nothing_else(path, error):
    def write():
        with atomic_file(path) as part:
            part.write_text("new")
            raise error

    with pytest.raises(error):
        write()
    assert path.read_text() == "old"
    assert os.listdir(path.parent) == ["out.txt"]


def test_replacing_keeps_a_file_without_force_and_passes_errors_of_the_caller_on(path):
    with pytest.raises(UserError, match=r"out\.txt exists; say --force"), replace_file(path, force=False) as part:
        part.write_text("new")
    with pytest.raises(ValueError, match="mine"), replace_file(path.parent / "new.txt", force=False):
        raise ValueError("mine")
    with replace_file(path, force=True) as part:
        part.write_text("new")
    assert path.read_text() == "new"
    assert os.listdir(path.parent) == ["out.txt"]


def test_a_file_that_another_program_makes_meanwhile_is_kept(tmp_path):
    path = tmp_path / "out.txt"
    with pytest.raises(UserError, match=r"out\.txt exists; say --force"), replace_file(path, force=False):
        path.write_text("another's")
    assert path.read_text() == "another's"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_a_claimed_name_is_the_first_that_is_free_and_is_taken_from_then_on(tmp_path):
    names = [str(tmp_path / name) for name in ("a", "b", "c", "d")]
    (tmp_path / "a").write_text("old")
    (tmp_path / "b").symlink_to(tmp_path / "nowhere")
    assert [claim_name(names), claim_name(names)] == names[2:]
    release_name(names[2])
    assert claim_name(names) == names[2]
    (tmp_path / "d").write_text("a result")
    release_name(names[3])
    assert (tmp_path / "d").read_text() == "a result"
    with pytest.raises(UserError, match=r"nowhere/a cannot be written: "):
        claim_name([str(tmp_path / "nowhere" / "a")])


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
    assert read_dataset(get_entry(file, "numbers", "file"), "numbers").tolist() == [0, 1, 2, 3]
    assert read_dataset(get_entry(file, "words", "file"), "words").tolist() == ["a", "é"]
    assert get_entry(file, "missing", "file") is None
    for name in ("soft", "outside", "virtual"):
        with pytest.raises(UserError, match=f"^{name} of file "):
            get_entry(file, name, "file")
    assert [name for name, _ in iterate_datasets(get_entry(file, "group", "file"), "file")] == ["numbers"]
    with pytest.raises(UserError, match="of file is a link"):
        dict(iterate_datasets(file, "file"))


def test_a_pipe_or_a_device_is_not_opened_as_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        with within_seconds(5), pytest.raises(OSError, match="it is a pipe or a device"):
            open_file(path)
    with pytest.raises(IsADirectoryError):
        open_file(tmp_path)
    with pytest.raises(FileNotFoundError):
        open_file(tmp_path / "none")
    (tmp_path / "file").write_bytes(b"content")
    with open_file(tmp_path / "file") as file:
        assert file.read() == b"content"


def test_a_checkpoint_file_is_read_only_if_it_holds_what_its_arrays_declare(tmp_path):
    path = tmp_path / "1-server.npz"
    for content in (
        hostile.zipped({"x.npy": hostile.npy(hostile.head(shape="(1000000000000,)"), bytes(64))}),
        hostile.zipped({"x.npy": hostile.npy(hostile.head(shape="(-8,)"), bytes(64))}),
        hostile.zipped({"x.npy": hostile.pickled((1,))}),
        hostile.zipped({"x.npy": hostile.npy(b"{[]: 1}")}),
        hostile.zipped({"../x": b"other"}),
        hostile.npz(x=np.zeros(10**6)),  # compressed
        b"no archive",
    ):
        checksummed.write_text(path, content)
        with pytest.raises(UserError, match=r"1-server\.npz is damaged or missing"):
            checksummed.read(path)
    checksummed.write(path, {"x": np.arange(3.0), "k": np.array(True), "name": np.array("a")})
    assert {name: values.tolist() for name, values in checksummed.read(path).items()} == {
        "x": [0, 1, 2],
        "k": True,
        "name": "a",
    }
