"""The result file: what it holds, that it survives a kill at any moment, and that writing it costs next to nothing."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import subprocess
import sys
import time
import zlib
from pathlib import Path

import h5py
import hypothesis.strategies as st
import numpy as np
import pytest
import xarray
from hypothesis import HealthCheck, given, settings

from mpifed.core.errors import Trouble, UserError
from mpifed.core.files import replacing
from mpifed.results import crash_safe_file as disk
from mpifed.results import netcdf, rounds_table, selection_log
from mpifed.results import recorder as record
from mpifed.results.columns import ALL, CLIENTS, COLUMNS, RANKS
from mpifed.results.recorder import Recorder
from mpifed.results.result import load

ROOT = Path(__file__).parents[2]
ATTRS = {"config": "seed = 3\n", "seed": 3, "ranks": 2, "mpi_library": "none"}
NOBODY = np.zeros(0, np.int64)


def row(k):
    return {"objective": 1 / (k + 1), "uploads": 4 * k, "elapsed_seconds": 0.1 * k}


def written(path, rows=5, **options):
    """A finished file of ``rows`` rounds in each of which clients 0 and 2 of 4 are chosen."""
    with Recorder(path, ATTRS, 4, **options) as recorder:
        for k in range(rows):
            recorder.row(row(k), np.array([0, 2]))
        recorder.finish("finished", "rounds: 4")
    return recorder


@pytest.fixture
def path(tmp_path):
    return tmp_path / "out.h5"


@pytest.fixture
def memory():
    return Recorder(None, ATTRS, 4)


# ---------------------------------------------------------------- the file and its attributes


def test_a_new_file_says_that_the_run_is_running(path):
    Recorder(path, ATTRS, 4)
    attrs = load(path).attrs
    assert attrs["format"] == "mpifed-result"
    assert attrs["format_version"] == 1
    assert attrs["status"] == "running"
    assert attrs["started"].endswith("Z")
    assert ATTRS.items() <= attrs.items()
    assert all(attrs[key] for key in ("mpifed_version", "python", "numpy", "host", "command_line"))


def test_a_finished_file_says_when_and_why_and_is_closed(path):
    recorder = written(path)
    assert not recorder.file
    with h5py.File(path) as file:
        assert (file.attrs["status"], file.attrs["stop_reason"]) == ("finished", "rounds: 4")
        assert file.attrs["started"] <= file.attrs["finished"]
    recorder.finish("failed", "too late")  # the first word counts
    assert load(path).status == "finished"


def test_one_in_memory_stays_open(memory):
    memory.row(row(0), None)
    memory.finish("finished", "")
    assert memory.file["rounds/objective"][0] == 1


def test_the_commit_is_there_in_a_repository_and_absent_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "git_commit" not in Recorder(None, ATTRS, 4).file.attrs
    author = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], [*author, "commit", "-q", "--allow-empty", "-m", "a"]):
        subprocess.run(["git", *words], check=True)
    assert len(Recorder(None, ATTRS, 4).file.attrs["git_commit"]) == 40


def test_an_attribute_without_a_value_is_left_out_and_odd_text_is_stored():
    given = {"config": "x" * 200_000, "a": None, "b": "stray \udcff, nul \0", "seed": 2**64 - 1}
    attrs = Recorder(None, given, 4).file.attrs
    assert "a" not in attrs
    assert attrs["b"].startswith("stray ")
    assert len(attrs["config"]) == 200_000
    assert attrs["seed"] == 2**64 - 1


# ---------------------------------------------------------------- files that exist, folders that do not


def test_an_existing_file_is_not_touched_without_force(path):
    path.write_text("precious")
    with pytest.raises(UserError, match=r"out\.h5 exists; say --force to overwrite it or -o for another name$"):
        Recorder(path, ATTRS, 4)
    assert path.read_text() == "precious"


def test_force_replaces_it(path):
    written(path, 3)
    written(path, 6, force=True)
    assert load(path).cr == 5
    assert os.listdir(path.parent) == ["out.h5"]


def test_with_force_the_old_file_stays_when_the_new_one_cannot_be_made(path):
    written(path, 3)
    with pytest.raises(TypeError):
        Recorder(path, {"config": object()}, 4, force=True)
    assert load(path).cr == 2
    assert os.listdir(path.parent) == ["out.h5"]


def test_force_spares_a_file_that_is_being_written(path):
    recorder = Recorder(path, ATTRS, 4)
    with pytest.raises(UserError, match=r"out\.h5 is being written by another run"):
        Recorder(path, ATTRS, 4, force=True)
    recorder.finish("finished", "")
    written(path, force=True)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("none/out.h5", r"cannot be written: there is no folder .*none"),
        ("file/out.h5", "cannot be written: "),
        ("folder", "is not a file"),
        ("x" * 300, "cannot be written: file name too long"),
    ],
)
def test_a_place_that_cannot_be_written_is_the_users_mistake(tmp_path, name, reason):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    with pytest.raises(UserError, match=reason) as caught:
        Recorder(tmp_path / name, ATTRS, 4)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_is_read_only_is_the_users_mistake(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(UserError, match="cannot be written: permission denied"):
        Recorder(tmp_path / "out.h5", ATTRS, 4)


# ---------------------------------------------------------------- rounds


def test_rows_are_columns_of_their_kind(path):
    written(path)
    with h5py.File(path) as file:
        rounds = file["rounds"]
        assert rounds["round"][:].tolist() == [0, 1, 2, 3, 4]
        assert rounds["uploads"][:].tolist() == [0, 4, 8, 12, 16]
        assert rounds["uploads"].dtype == np.int64
        assert rounds["objective"].dtype == np.float64


def test_every_dataset_has_units_a_description_and_named_axes(path):
    with Recorder(path, ATTRS, 4) as recorder:
        for _ in range(3):
            recorder.row(dict.fromkeys(COLUMNS, 1), np.array([1]))
        recorder.ranks({"clients": [0, 4], "hostname": ["a", "b"]})
        recorder.clients({"samples": [5, 5, 5, 5], "own": [1, 2, 3, 4]})
        recorder.model(np.zeros(7), np.zeros((4, 7)))

    def check(name, item):
        if isinstance(item, h5py.Dataset):
            assert item.attrs["units"], name
            assert item.attrs["description"].endswith("."), name
            if not item.is_scale:
                assert all(len(axis) == 1 for axis in item.dims), name
            seen.append(name)

    seen: list[str] = []
    with h5py.File(path) as file:
        file.visititems(check)
    assert {"selection", "model/x", "model/personal", "ranks/hostname", "clients/own"} <= set(seen)


def test_a_column_that_appears_late_was_not_a_number_before(memory):
    memory.row({"objective": 1.0}, None)
    memory.flush()
    memory.row({"objective": 0.5, "snr": 7.0, "inner_steps": 3}, None)
    memory.row({"snr": 8.0}, None)
    rounds = memory.result().rounds
    np.testing.assert_equal(rounds["snr"], [np.nan, 7, 8])
    np.testing.assert_equal(rounds["objective"], [1, 0.5, np.nan])
    assert rounds["inner_steps"].tolist() == [0, 3, 0]  # a count: none is 0


def test_large_counts_are_exact(memory):
    memory.row({"bytes_up": 2**60 + 1}, None)
    assert memory.result().rounds["bytes_up"][0] == 2**60 + 1


def test_a_count_that_turns_out_to_be_a_mean_loses_nothing(memory):
    for value in (2, 3.0, 2.5):
        memory.row({"inner_steps": value}, None)
        memory.flush()
    assert memory.result().rounds["inner_steps"].tolist() == [2, 3, 2.5]
    assert len(memory.file["rounds/inner_steps"].dims[0]) == 1


def test_an_algorithm_may_say_what_its_column_is(memory):
    memory.declare("tilt", "rad", "Angle between the last two steps.")
    memory.declare("objective", "km", "Something else.")
    memory.row({"tilt": 0.1, "objective": 1, "other": 2}, None)
    about = memory.result().about
    assert about["tilt"] == ("rad", "Angle between the last two steps.")
    assert about["objective"] == COLUMNS["objective"][:2]  # the fixed names mean the same in every file
    assert about["other"] == ("1", "Reported by the algorithm.")


@pytest.mark.parametrize("name", ["a/b", "round"])
def test_a_column_cannot_be_called(memory, name):
    with pytest.raises(ValueError, match=name):
        memory.row({name: 1}, None)


def test_a_row_may_be_changed_after_it_was_recorded(memory, monkeypatch):
    monkeypatch.setattr(record, "FLUSH_SECONDS", 1e9)
    values, ids = {"objective": 0.0}, np.array([3])
    for k in range(3):
        values["objective"] = ids[0] = k
        memory.row(values, ids)
    result = memory.result()
    assert result.rounds["objective"].tolist() == [0, 1, 2]
    assert result.selection.tolist() == [[-1], [1], [2]]


# ---------------------------------------------------------------- who was chosen


def test_selection_has_a_row_a_round_and_grows_in_width(memory):
    for ids in ([0], [1], [0, 2, 3], [], [2, 1]):
        memory.row({}, np.array(ids, np.int64))
        memory.flush()
    assert memory.file["selection"].dtype == np.int32
    assert memory.result().selection.tolist() == [[-1] * 3, [1, -1, -1], [0, 2, 3], [-1] * 3, [2, 1, -1]]


def test_none_means_all(memory):
    memory.row({}, None)
    memory.row({}, None)
    result = memory.result()
    assert result.selection.tolist() == [[-1] * 4, [0, 1, 2, 3]]
    assert result.selected(1).tolist() == [0, 1, 2, 3]


def test_all_of_very_many_clients_are_one_mark():
    recorder = Recorder(None, ATTRS, 10_000)
    for ids in (None, None, np.array([7, 9])):
        recorder.row({}, ids)
    result = recorder.result()
    assert result.selection.tolist() == [[-1, -1], [ALL, -1], [7, 9]]
    assert len(result.selected(1)) == 10_000
    assert [len(result.selected(k)) for k in (0, 2)] == [0, 2]


def test_a_run_without_rounds_has_a_selection_too(path):
    with Recorder(path, ATTRS, 4) as recorder:
        recorder.row(row(0), NOBODY)
    assert load(path).selection.tolist() == [[-1]]


# ---------------------------------------------------------------- ranks, clients, model


def test_tables_and_models_are_stored_as_they_are(path):
    with Recorder(path, ATTRS, 4) as recorder:
        recorder.ranks({"clients": [0, 4], "compute_seconds": [0.0, 1.5], "hostname": ["α", "node7"]})
        recorder.clients({"samples": np.array([5, 6, 7, 8], np.int32), "rank": [1, 1, 1, 1]})
        recorder.model(np.arange(3, dtype=np.float32), np.ones((4, 3)))
    result = load(path)
    assert result.ranks["hostname"].tolist() == ["α", "node7"]
    assert result.ranks["rank"].tolist() == [0, 1]
    assert result.clients["samples"].tolist() == [5, 6, 7, 8]
    assert result.x.dtype == np.float32
    assert result.personal.shape == (4, 3)


def test_a_table_may_be_written_again(memory):
    memory.ranks({"io_seconds": [0.0, 0.0]})
    memory.ranks({"io_seconds": [1.0, 2.0]})
    assert memory.result().ranks["io_seconds"].tolist() == [1, 2]


# ---------------------------------------------------------------- how a run ends


@pytest.mark.parametrize(
    ("error", "status", "reason"),
    [
        (ValueError("bad\nthings"), "failed", "ValueError: bad things"),
        (RuntimeError(), "failed", "RuntimeError"),
        (UserError("x is wrong"), "failed", "x is wrong"),
        (KeyboardInterrupt(), "stopped", "KeyboardInterrupt"),
    ],
)
def test_an_exception_is_recorded_and_goes_on(path, error, status, reason):
    recorder = Recorder(path, ATTRS, 4)

    def run():
        with recorder:
            recorder.row(row(0), None)
            raise error

    with pytest.raises(type(error)):
        run()
    result = load(path)
    assert (result.status, result.stop_reason) == (status, reason)
    assert len(result.rounds["objective"]) == 1
    assert not recorder.file


# ---------------------------------------------------------------- when rows reach the disk


def test_rows_wait_in_memory_for_a_while(path, monkeypatch):
    monkeypatch.setattr(record, "FLUSH_SECONDS", 1e9)
    recorder = Recorder(path, ATTRS, 4)
    for k in range(9):
        recorder.row(row(k), None)
    assert len(recorder.file["rounds/round"]) == 1  # row 0 is there at once
    recorder.flush()
    assert len(recorder.file["rounds/round"]) == 9


def test_a_slow_round_is_written_at_once(path, monkeypatch):
    monkeypatch.setattr(record, "FLUSH_SECONDS", 0.01)
    recorder = Recorder(path, ATTRS, 4)
    for k in range(3):
        time.sleep(0.02)
        recorder.row(row(k), None)
        assert len(recorder.file["rounds/round"]) == k + 1


def test_writing_is_cheap(path):
    values = {name: 7 if column.integer else 0.5 for name, column in COLUMNS.items()}
    begun = time.process_time()
    with Recorder(path, ATTRS, 128) as recorder:
        for _ in range(20_000):
            recorder.row(values, None)
    assert time.process_time() - begun < 1  # 0.1 s on an idle core: 5 µs a row, all in
    assert recorder.io_seconds > 0


# ---------------------------------------------------------------- other readers


def test_xarray_opens_every_group(path):
    with Recorder(path, ATTRS, 4) as recorder:
        for k in range(3):
            recorder.row(row(k), np.array([1, 3]))
        recorder.ranks({"clients": [0, 4], "hostname": ["a", "b"]})
        recorder.clients({"samples": [5, 5, 5, 5]})
        recorder.model(np.zeros(7), np.zeros((4, 7)))
    sizes = {
        "/": {"round": 3, "slot": 2},
        "rounds": {"round": 3},
        "ranks": {"rank": 2},
        "clients": {"client": 4},
        "model": {"client": 4, "parameter": 7},
    }
    for group, expected in sizes.items():
        with xarray.open_dataset(path, group=group, engine="h5netcdf") as data:
            assert dict(data.sizes) == expected
            data.load()
    with xarray.open_dataset(path, group="rounds", engine="h5netcdf") as data:
        assert data["elapsed_seconds"].dtype == np.float64  # and no time difference
        assert data["round"].values.tolist() == [0, 1, 2]
        assert data["elapsed_seconds"].attrs["units"] == "s"
    with xarray.open_dataset(path, engine="h5netcdf") as data:
        assert data.attrs["status"] == "finished"
        assert data["selection"].values.tolist() == [[-1, -1], [1, 3], [1, 3]]


WRITER = """
import os, signal, sys, time
import numpy as np
from mpifed.results import netcdf, recorder as record

record.FLUSH_SECONDS = float(sys.argv[2])

def write(path):
    done = os.open(path + ".done", os.O_CREAT | os.O_WRONLY)
    rng = np.random.default_rng(0)
    recorder = record.Recorder(path, {"config": ""}, 64)
    for k in range(10**9):
        late = {"snr": k} if k > 9 else {}
        recorder.row({"objective": k, "uploads": k, "compute_seconds": k, **late}, rng.permutation(64)[: 8 + k % 20])
        if record.FLUSH_SECONDS == 0:
            os.pwrite(done, b"%012d" % (k + 1), 0)        # so many rounds are on the disk
        else:
            time.sleep(0.002)

def rounds(path):
    try:
        return int(open(path + ".done").read() or 0)
    except FileNotFoundError:
        return 0

if sys.argv[3:]:
    for k in range(int(sys.argv[3])):
        path = f"{sys.argv[1]}-{k}.h5"
        delay = np.random.default_rng(k).random()
        child = os.fork()
        if not child:
            write(path)
        if k % 2:                                         # while the file is being made
            time.sleep(0.02 * delay)
        else:
            while rounds(path) < 30:
                time.sleep(0.001)
            time.sleep(0.1 * delay)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
else:
    write(sys.argv[1])
"""


def writer(*words):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen([sys.executable, "-c", WRITER, *map(str, words)], env=environment)


def test_a_reader_follows_a_file_that_is_being_written(path):
    process = writer(path, 0.01)
    try:
        seen, opened = [], 0
        deadline = time.monotonic() + 20
        while len(set(seen)) < 4 and time.monotonic() < deadline:
            assert process.poll() is None
            if os.path.exists(f"{path}.done") and path.exists() and path.stat().st_size > 20_000:
                with contextlib.suppress(OSError), h5py.File(path, "r", locking=False) as file:
                    opened += file.attrs["status"] == "running"
                result = load(path)
                seen.append(len(result.rounds["round"]))
                if seen[-1]:
                    assert result.rounds["objective"].tolist() == list(range(seen[-1]))
            time.sleep(0.03)
        assert len(set(seen)) >= 4
        assert opened > len(seen) / 2  # now and then the file changes while it is being opened
        assert seen == sorted(seen)
    finally:
        process.kill()
        process.wait()


def examine(path, done):
    """A file that a kill left: HDF5 opens it, and it has the rounds that were flushed."""
    with h5py.File(path) as file:  # the lock died with its owner
        assert dict(file.attrs)["format"] == "mpifed-result"
        numbers = file["rounds/round"][:]
        whole = np.count_nonzero(numbers == np.arange(len(numbers)))
        assert whole >= done
        for name in ("objective", "uploads", "compute_seconds") if whole else ():
            assert np.array_equal(file["rounds"][name][:whole], np.arange(whole)), name
        assert whole <= 1 or len(file["selection"][:]) >= whole
        file.visititems(lambda _, item: (dict(item.attrs), item[()] if isinstance(item, h5py.Dataset) else None))
    return whole


def test_a_run_that_is_killed_leaves_its_rounds(tmp_path):
    assert writer(tmp_path / "out", 0, 40).wait(60) == 0
    for k in range(40):
        path, marks = tmp_path / f"out-{k}.h5", tmp_path / f"out-{k}.h5.done"
        done = int(marks.read_text() or 0) if marks.exists() else 0
        assert path.exists() or not done
        if path.exists():
            assert len(load(path).rounds["round"]) == examine(path, done)


@pytest.mark.parametrize(("rows", "step", "chunk"), [(12, 1, 16), pytest.param(370, 37, 4, marks=pytest.mark.slow)])
def test_between_any_two_writes_the_file_opens_with_every_row_that_was_flushed(path, monkeypatch, rows, step, chunk):
    """What a kill finds: a flush has many pieces, and the process may end between any two of them."""
    images, flushed, copy = [], 0, path.with_name("copy.h5")

    def watched(change):
        def call(*words):
            result = change(*words)
            if path.exists():
                images.append((zlib.compress(path.read_bytes(), 1), flushed))
            return result

        return call

    for name in ("pwrite", "ftruncate", "posix_fallocate", "replace", "link"):
        monkeypatch.setattr(os, name, watched(getattr(os, name)))
    monkeypatch.setattr(record, "FLUSH_SECONDS", 1e9)
    monkeypatch.setattr(rounds_table, "CHUNK", chunk)  # small, so that the trees of chunks split
    monkeypatch.setattr(selection_log, "CHUNK_IDS", 16 * chunk)
    rng = np.random.default_rng(0)
    recorder = Recorder(path, ATTRS, 64)
    for k in range(rows):
        late = {"snr": k} if k > 5 else {}
        mean = k if k < 9 else 0.5
        recorder.row(
            {"objective": k, "uploads": k, "compute_seconds": k, "inner_steps": mean, **late},
            rng.permutation(64)[: 8 + 4 * k // rows],
        )
        if k % step == 0:
            recorder.flush()
            flushed = k + 1
    recorder.clients(dict.fromkeys(CLIENTS, np.arange(64)))
    recorder.ranks({**dict.fromkeys(RANKS, np.arange(40)), "hostname": [f"node{k}" for k in range(40)]})
    recorder.model(np.zeros(100))
    recorder.finish("finished", "because")
    monkeypatch.undo()
    assert len({image for image, _ in images}) > 150
    for image, done in dict(images).items():
        copy.write_bytes(zlib.decompress(image))
        examine(copy, done)
    assert load(copy).stop_reason == "because"


def test_what_needs_a_copy_goes_to_the_file_where_there_can_be_none(path, monkeypatch):
    recorder = Recorder(path, ATTRS, 4)
    monkeypatch.setattr(disk, "LARGEST", 0)
    for k in range(5):
        recorder.row(row(k), np.array([0, 2]))
        recorder.flush()
    recorder.finish("finished", "")
    assert load(path).selection.tolist() == [[-1, -1]] + [[0, 2]] * 4


def test_a_file_that_is_moved_takes_its_rounds_along_and_leaves_others_alone(path):
    recorder, moved = Recorder(path, ATTRS, 4), path.with_name("moved.h5")
    path.rename(moved)
    path.write_text("mine")
    for k in range(3):
        recorder.row(row(k), np.array([0, 2]))
    recorder.finish("finished", "")
    assert path.read_text() == "mine"
    assert load(moved).cr == 2
    assert {*os.listdir(path.parent)} == {"out.h5", "moved.h5"}


def test_the_lock_goes_with_the_file(path):
    recorder = Recorder(path, ATTRS, 4)
    before = path.stat().st_ino
    recorder.row(row(0), None)
    assert path.stat().st_ino != before  # its columns were made in a copy
    with pytest.raises(UserError, match=r"out\.h5 is being written by another run"):
        Recorder(path, ATTRS, 4, force=True)


def refuse(number):
    def call(*_):
        raise OSError(number, os.strerror(number))

    return call


@pytest.mark.parametrize("links", [True, False], ids=["hard links", "no hard links"])
def test_of_two_runs_that_begin_together_one_gets_the_name(path, monkeypatch, links):
    def late():
        with replacing(path, False) as place:
            place.write_text("late")
            path.write_text("early")

    if not links:
        monkeypatch.setattr(os, "link", refuse(errno.EPERM))
    with pytest.raises(UserError, match=r"out\.h5 exists; say --force"):
        late()
    assert path.read_text() == "early"
    assert os.listdir(path.parent) == ["out.h5"]


def test_a_file_system_needs_no_hard_links(path, monkeypatch):
    monkeypatch.setattr(os, "link", refuse(errno.EPERM))
    written(path)
    assert load(path).cr == 4
    assert os.listdir(path.parent) == ["out.h5"]


def test_what_a_kill_left_of_a_copy_is_removed(path):
    path.with_name(".out.h5.part").write_text("half")
    written(path)
    assert os.listdir(path.parent) == ["out.h5"]


# ---------------------------------------------------------------- disks that are full or break


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

    with pytest.raises(
        Trouble, match=r"out\.h5 cannot grow: no space left on device; the rounds in it are safe, and resume"
    ):
        run()
    result = load(path)
    assert (result.status, result.cr) == ("failed", 2)
    assert "no space left" in result.stop_reason


@pytest.mark.parametrize("after", [0, 1, 4, 9, 20, 40])
def test_a_disk_that_breaks_leaves_what_was_there(path, monkeypatch, after):
    recorder, write, left = Recorder(path, ATTRS, 4), os.pwrite, [after]

    def breaking(*words):
        left[0] -= 1
        return refuse(errno.EIO)() if left[0] < 0 else write(*words)

    def run():
        with recorder:
            for k in range(40):
                if k == 8:
                    monkeypatch.setattr(os, "pwrite", breaking)
                recorder.row({"objective": k, "uploads": k, "compute_seconds": k}, np.array([0, 2]))
                recorder.flush()

    with pytest.raises(Trouble, match=r"out\.h5 cannot be written: input/output error; the rounds in it are safe"):
        run()
    monkeypatch.undo()
    assert not recorder.file
    examine(path, 8)
    assert load(path).status == "running"


PIECES = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 200), st.binary(min_size=1, max_size=40)),
        st.tuples(st.just("read"), st.integers(0, 200), st.integers(1, 60)),
        st.tuples(st.just("truncate"), st.integers(0, 200), st.none()),
        st.tuples(st.just("flush"), st.none(), st.none()),
        st.tuples(st.just("renew"), st.none(), st.none()),
    ),
    max_size=30,
)


@settings(suppress_health_check=list(HealthCheck))
@given(PIECES)
def test_a_disk_holds_what_was_written_last(tmp_path, pieces):
    path, plain = tmp_path / "file", io.BytesIO()
    path.write_bytes(b"")
    file = disk.CrashSafeFile(path, netcdf.urgency)
    file.publish(path)
    for action, place, value in pieces:
        if action == "write":
            file.seek(place)
            plain.seek(place)
            file.write(memoryview(value))
            plain.write(value)
        elif action == "read":
            file.seek(place)
            plain.seek(place)
            assert file.read(value)[: max(0, len(plain.getvalue()) - place)] == plain.read(value)
        elif action == "truncate" and place >= len(plain.getvalue()):  # HDF5 that uses no space twice only adds
            file.truncate(place)
            plain = io.BytesIO(plain.getvalue().ljust(place, b"\0"))
        elif action == "flush":
            file.flush()
            assert path.read_bytes() == plain.getvalue()
        elif action == "renew":
            with file.renewed(file.flush, False):
                pass
    file.flush()
    file.close()
    assert path.read_bytes() == plain.getvalue()
