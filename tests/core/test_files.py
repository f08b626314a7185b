"""Files appear under their name when they are complete, and never otherwise."""

import os

import pytest

from mpifed.core.errors import UserError
from mpifed.core.files import atomic_file, claim, replacing, unclaim


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
    with pytest.raises(UserError, match=r"out\.txt exists; say --force"), replacing(path, force=False) as part:
        part.write_text("new")
    with pytest.raises(ValueError, match="mine"), replacing(path.parent / "new.txt", force=False):
        raise ValueError("mine")
    with replacing(path, force=True) as part:
        part.write_text("new")
    assert path.read_text() == "new"
    assert os.listdir(path.parent) == ["out.txt"]


def test_a_claimed_name_is_the_first_that_is_free_and_is_taken_from_then_on(tmp_path):
    names = [str(tmp_path / name) for name in ("a", "b", "c", "d")]
    (tmp_path / "a").write_text("old")
    (tmp_path / "b").symlink_to(tmp_path / "nowhere")
    assert [claim(names), claim(names)] == names[2:]
    unclaim(names[2])
    assert claim(names) == names[2]
    (tmp_path / "d").write_text("a result")
    unclaim(names[3])
    assert (tmp_path / "d").read_text() == "a result"
    with pytest.raises(UserError, match=r"nowhere/a cannot be written: "):
        claim([str(tmp_path / "nowhere" / "a")])
