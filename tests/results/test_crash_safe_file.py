"""A result file can be read after a kill at any moment, and after a full or broken disk."""

import errno
import io
import os
import resource

import h5py
import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings

from mpifed.core.errors import RunError, UserError
from mpifed.results import crash_safe_file as disk
from mpifed.results import model_log, netcdf, rounds_table
from mpifed.results import recorder as record
from mpifed.results.columns import CLIENTS, RANKS
from mpifed.results.recorder import Recorder
from mpifed.results.result import load
from tests.helpers.commands import mpifed
from tests.results.conftest import ATTRS, Images, examine, row, written


@pytest.mark.parametrize(("rows", "step", "chunk"), [(11, 5, 4), pytest.param(370, 37, 4, marks=pytest.mark.slow)])
def test_between_any_two_writes_the_file_opens_with_all_that_was_flushed(path, monkeypatch, rows, step, chunk):
    """What a kill finds: a flush has many pieces, and the process may end between any two of them."""
    images = Images(path, monkeypatch)
    monkeypatch.setattr(record, "FLUSH_SECONDS", 1e9)
    monkeypatch.setattr(rounds_table, "CHUNK", chunk)  # small, so that the trees of chunks split
    monkeypatch.setattr(rounds_table, "CHUNK_IDS", 16 * chunk)
    monkeypatch.setattr(model_log, "CHUNK", 4)
    monkeypatch.setattr(model_log, "LONGEST", 3)
    rng = np.random.default_rng(0)
    recorder = Recorder(path, ATTRS, 64)
    for k in range(rows):
        late = {"snr": k} if k > 5 else {}
        values = {"objective": k, "uploads": k, "compute_seconds": k, "inner_steps": k if k < 9 else 0.5}
        recorder.row(values | late, rng.permutation(64)[: 8 + 4 * k // rows])
        if k % step == 0:
            recorder.flush()
            recorder.write_snapshot(np.full(5, float(k)), step)
            images.done = k + 1
    recorder.table("clients", dict.fromkeys(CLIENTS, np.arange(64)))
    recorder.table("ranks", {**dict.fromkeys(RANKS, np.arange(40)), "hostname": [f"node{k}" for k in range(40)]})
    recorder.model(np.zeros(100))
    recorder.finish("finished", "because")
    monkeypatch.undo()
    assert len(images.taken) > 120
    for copy, done in images.files():
        examine(copy, done)
        result = load(copy)
        found = result.models["round"].tolist()
        assert found == list(range(0, step * len(found), step))
        assert result.models["x"].tolist() == [[k] * 5 for k in found]
        assert (done - 1) // step < len(found) <= result.cr // step + 1 or not done
    assert load(copy).stop_reason == "because"


def test_what_needs_a_copy_goes_to_the_file_where_there_can_be_none(path, monkeypatch):
    recorder = Recorder(path, ATTRS, 4)
    monkeypatch.setattr(disk, "LARGEST", 0)
    for k in range(5):
        recorder.row(row(k), np.array([0, 2]))
        recorder.flush()
    recorder.finish("finished", "")
    assert load(path).selection.tolist() == [[-1, -1]] + [[0, 2]] * 4


def test_a_file_that_is_moved_takes_its_rounds_and_lock_along_and_leaves_others_alone(path):
    recorder = Recorder(path, ATTRS, 4)
    before = path.stat().st_ino
    recorder.row(row(0), None)
    assert path.stat().st_ino != before  # its columns were made in a copy
    with pytest.raises(UserError, match=r"out\.h5 is being written by another run"):
        Recorder(path, ATTRS, 4, force=True)
    moved = path.with_name("moved.h5")
    path.rename(moved)
    path.write_text("mine")
    for k in (1, 2):
        recorder.row(row(k), np.array([0, 2]))
    recorder.finish("finished", "")
    assert path.read_text() == "mine"
    assert load(moved).cr == 2
    assert {*os.listdir(path.parent)} == {"out.h5", "moved.h5"}


def refuse(number):
    def call(*_):
        raise OSError(number, os.strerror(number))

    return call


@pytest.mark.parametrize("links", [True, False], ids=["hard links", "no hard links"])
def test_of_two_runs_that_begin_together_one_gets_the_name(path, monkeypatch, links):
    if not links:
        monkeypatch.setattr(os, "link", refuse(errno.EPERM))
    before, begin = h5py.h5f.get_obj_count(), netcdf.begin
    monkeypatch.setattr(netcdf, "begin", lambda *words: path.write_text("early") and begin(*words))
    with pytest.raises(UserError, match=r"out\.h5 exists; say --force") as caught:
        Recorder(path, ATTRS, 4)
    monkeypatch.setattr(netcdf, "begin", begin)
    assert path.read_text() == "early"
    assert h5py.h5f.get_obj_count() == before, f"{caught.tb} holds what HDF5 would write when Python is gone"
    path.unlink()
    path.with_name(".out.h5.part").write_text("half")  # what a kill left of a copy is removed
    written(path)
    assert load(path).cr == 4
    assert os.listdir(path.parent) == ["out.h5"]


def test_a_full_disk_is_noticed_before_anything_is_lost(path, monkeypatch):
    recorder = Recorder(path, ATTRS, 4)

    def run():
        with recorder:
            for k in range(3):
                recorder.row(row(k), np.array([1]))
                recorder.flush()
            monkeypatch.setattr(os, "posix_fallocate", refuse(errno.ENOSPC))
            recorder.row(row(3), np.array([0, 1]))  # a wider table needs room
            recorder.flush()

    told = r"out\.h5 cannot grow: no space left on device; the rounds in it are safe, and resume"
    with pytest.raises(RunError, match=told):
        run()
    result = load(path)
    assert (result.status, result.cr) == ("failed", 2)
    assert "no space left" in result.stop_reason


@pytest.mark.parametrize(("kilobytes", "force"), [(4, True), (12, False), (64, True)])
def test_a_disk_that_is_full_from_the_start_is_one_sentence_and_leaves_what_was_there(kilobytes, force, tmp_path):
    """No file may become larger than this: enough for no file at all, for an empty one, for no row."""
    path = tmp_path / "out.h5"
    if force:
        path.write_text("precious")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1024 * kilobytes, before[1]))
    try:
        done = mpifed("run", "rounds=2", "-q", "-o", path, *["--force"] * force)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (done.code, done.err) == (1, f"mpifed: {path} cannot be written: file too large\n")
    assert [file.read_text() for file in tmp_path.iterdir()] == ["precious"] * force


def test_a_disk_that_is_full_at_the_first_row_leaves_no_file(path, monkeypatch):
    recorder = Recorder(path, ATTRS, 4)
    monkeypatch.setattr(os, "posix_fallocate", refuse(errno.ENOSPC))
    with pytest.raises(RunError, match=r"out\.h5 cannot be written: no space left on device$"), recorder:
        recorder.row(row(0), None)
    assert not os.listdir(path.parent)


# Linux tells a program once that what it wrote has not reached the disk.
@pytest.mark.parametrize(("name", "when"), [*(("pwrite", range(k, 999)) for k in (0, 1, 4, 9, 20, 40)), ("fsync", [0])])
def test_a_disk_that_breaks_leaves_what_was_there(path, monkeypatch, name, when):
    recorder, call, number = Recorder(path, ATTRS, 4), getattr(os, name), iter(range(9999))

    def breaking(*words):
        return refuse(errno.EIO)() if next(number) in when else call(*words)

    def run():
        with recorder:
            for k in range(40):
                if k == 8:
                    monkeypatch.setattr(os, name, breaking)
                recorder.row({"objective": k, "uploads": k, "compute_seconds": k}, np.array([0, 2]))
                recorder.flush()

    with pytest.raises(RunError, match=r"out\.h5 cannot be written: input/output error; the rounds in it are safe"):
        run()
    monkeypatch.undo()
    assert not recorder.file
    examine(path, 8)
    assert load(path).status == "running"


PIECES = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 200), st.binary(min_size=1, max_size=40)),
        st.tuples(st.just("read"), st.integers(0, 200), st.integers(1, 60)),
        st.tuples(st.sampled_from(["truncate", "flush", "renew"]), st.integers(0, 200), st.none()),
    ),
    max_size=30,
)


@settings(suppress_health_check=list(HealthCheck))
@given(PIECES)
@example([("write", 0, b"a"), ("flush", 0, None), ("write", 0, b"bc"), ("write", 1, b"d")])  # across the known end
def test_a_disk_holds_what_was_written_last(tmp_path, pieces):
    path, plain = tmp_path / "file", io.BytesIO()
    path.write_bytes(b"")
    file = disk.CrashSafeFile(path, netcdf.write_priority)
    file.publish(path)
    for action, place, value in pieces:
        file.seek(place)
        plain.seek(place)
        if action == "write":
            file.write(memoryview(value))
            plain.write(value)
        elif action == "read":
            assert file.read(value)[: max(0, len(plain.getvalue()) - place)] == plain.read(value)
        elif action == "truncate" and place >= len(plain.getvalue()):  # HDF5 that uses no space twice only adds
            file.truncate(place)
            plain = io.BytesIO(plain.getvalue().ljust(place, b"\0"))
        elif action == "flush":
            file.flush()
            assert path.read_bytes() == plain.getvalue()
        elif action == "renew":
            with file.change_atomically(file.flush, False):
                pass
    file.flush()
    file.close()
    assert path.read_bytes() == plain.getvalue()
