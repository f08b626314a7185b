"""Files appear under their name when they are complete, and never otherwise."""

from __future__ import annotations

import os

import pytest

from mpifed.core.errors import UserError
from mpifed.core.files import atomic_file, claim, replacing, unclaim


def test_an_atomic_file_appears_when_it_is_complete(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    with atomic_file(path) as part:
        part.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["out.txt"]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, error):
    path = tmp_path / "out.txt"
    path.write_text("old")

    def write():
        with atomic_file(path) as part:
            part.write_text("new")
            raise error

    with pytest.raises(error):
        write()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.txt"]


def test_two_writers_of_one_name_do_not_share_a_file(tmp_path):
    path = tmp_path / "out.txt"
    with atomic_file(path) as first, atomic_file(path) as second:
        first.write_text("first")
        second.write_text("second")
    assert path.read_text() == "first"  # the last one to finish
    assert os.listdir(tmp_path) == ["out.txt"]


def test_replacing_keeps_a_file_without_force(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")
    with pytest.raises(UserError, match=r"out\.txt exists; say --force"), replacing(path, force=False) as part:
        part.write_text("new")
    with replacing(path, force=True) as part:
        part.write_text("new")
    assert path.read_text() == "new"


def test_an_error_of_the_caller_is_not_taken_for_one_of_the_disk(tmp_path):
    with pytest.raises(ValueError, match="mine"), replacing(tmp_path / "out.txt", force=False):
        raise ValueError("mine")
    assert os.listdir(tmp_path) == []


def test_a_claimed_name_is_the_first_that_is_free_and_is_taken_from_then_on(tmp_path):
    names = [str(tmp_path / name) for name in ("a", "b", "c", "d")]
    (tmp_path / "a").write_text("old")
    (tmp_path / "b").symlink_to(tmp_path / "nowhere")
    assert claim(names) == names[2]
    assert claim(names) == names[3]
    unclaim(names[2])
    assert claim(names) == names[2]
    (tmp_path / "d").write_text("a result")
    unclaim(names[3])
    assert (tmp_path / "d").read_text() == "a result"
    with pytest.raises(UserError, match=r"nowhere/a cannot be written: "):
        claim([str(tmp_path / "nowhere" / "a")])
