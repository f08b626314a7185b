"""The recorder: its file, where it comes from, how a run ends, when rows reach the disk, and other readers."""

import contextlib
import os
import re
import subprocess
import sys
import threading
import time

import h5py
import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from mpifed.core.errors import RunError, UserError
from mpifed.results import provenance
from mpifed.results import recorder as record
from mpifed.results.recorder import Recorder
from mpifed.results.result import load
from tests.helpers.commands import ROOT, execute
from tests.results.conftest import ATTRS, row, written


def test_a_new_file_says_that_the_run_is_running_and_what_it_is_given_but_what_has_no_value(path):
    given = ATTRS | {"config": "x" * 200_000, "a": None, "b": "stray \udcff, nul \0", "seed": 2**64 - 1}
    Recorder(path, given, 4)
    attrs = load(path).attrs
    wanted = {"format": "mpifed-result", "format_version": 2, "status": "running"}
    assert (ATTRS | wanted | {key: given[key] for key in ("config", "seed")}).items() <= attrs.items()
    assert attrs["started"].endswith("Z")
    assert all(attrs[key] for key in ("mpifed_version", "python", "numpy", "host", "command_line"))
    assert "a" not in attrs
    assert attrs["b"].startswith("stray ")


def test_the_commit_is_there_in_a_repository_and_absent_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "git_commit" not in Recorder(None, ATTRS, 4).file.attrs
    author = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], [*author, "commit", "-q", "--allow-empty", "-m", "a"]):
        subprocess.run(["git", *words], check=True)
    assert len(Recorder(None, ATTRS, 4).file.attrs["git_commit"]) == 40


def test_cpus_are_ranges_where_the_system_tells_them_and_threads_those_of_blas(monkeypatch):
    for threads in (1, 2):
        with threadpool_limits(threads, "blas"):
            assert provenance.count_threads() == threads
    for cpus, text in (({0}, "0"), ({0, 1, 2, 3}, "0-3"), ({8, 0, 1, 10, 11}, "0-1,8,10-11"), (set(), "")):
        monkeypatch.setattr(os, "sched_getaffinity", lambda process, cpus=cpus: cpus, raising=False)
        assert provenance.describe_cpus() == text
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert provenance.describe_cpus() == ""


def test_a_finished_file_says_when_and_why_and_is_closed_but_one_in_memory_stays_open(path, memory):
    memory.row(row(0), None)
    memory.finish("finished", "")
    assert memory.file["rounds/objective"][0] == 1
    recorder = written(path)
    assert not recorder.file
    with h5py.File(path) as file:
        assert (file.attrs["status"], file.attrs["stop_reason"]) == ("finished", "rounds: 4")
        assert file.attrs["started"] <= file.attrs["finished"]
    recorder.finish("failed", "too late")  # the first word counts
    assert load(path).status == "finished"


def test_an_existing_file_is_replaced_only_with_force_and_when_the_new_one_is_made(path):
    path.write_text("precious")
    with pytest.raises(UserError, match=r"out\.h5 exists; say --force to overwrite it or -o for another name$"):
        Recorder(path, ATTRS, 4)
    assert path.read_text() == "precious"
    written(path, 3, force=True)
    with pytest.raises(TypeError):
        Recorder(path, {"config": object()}, 4, force=True)
    assert load(path).cr == 2
    assert os.listdir(path.parent) == ["out.h5"]


def test_a_place_that_cannot_be_written_is_the_users_mistake(tmp_path):
    (tmp_path / "file").touch()
    (tmp_path / "folder").mkdir()
    (tmp_path / "read-only").mkdir(0o500)
    reasons = {"none/out.h5": "cannot be written: there is no folder .*none", "file/out.h5": "cannot be written: .*"}
    reasons |= {"folder": "is not a file.*", "x" * 300: "cannot be written: file name too long"}
    if os.geteuid():  # root may write everywhere
        reasons["read-only/out.h5"] = "cannot be written: permission denied"
    for name, reason in reasons.items():
        with pytest.raises(UserError, match=rf"^[^\n]*{re.escape(name)} {reason}$"):
            Recorder(tmp_path / name, ATTRS, 4)


def test_tables_and_models_are_stored_as_they_are_and_a_table_may_be_written_again(path, memory):
    with Recorder(path, ATTRS, 4) as recorder:
        recorder.table("ranks", {"clients": [0, 4], "hostname": ["α", "node7"]})
        recorder.table("clients", {"samples": np.array([5, 6, 7, 8], np.int32)})
        recorder.model(np.arange(3, dtype=np.float32), np.ones((4, 3)))
    result = load(path)
    assert (result.ranks["hostname"].tolist(), result.ranks["rank"].tolist()) == (["α", "node7"], [0, 1])
    assert (result.clients["samples"].tolist(), result.x.dtype) == ([5, 6, 7, 8], np.float32)
    memory.table("ranks", {"io_seconds": [0.0, 0.0]})
    memory.table("ranks", {"io_seconds": [1.0, 2.0]})
    assert memory.result().ranks["io_seconds"].tolist() == [1, 2]


@pytest.mark.parametrize(
    ("error", "rows", "status", "reason"),
    [
        (ValueError("bad\nthings"), 1, "failed", "ValueError: bad things"),
        (RuntimeError(), 1, "failed", "RuntimeError"),
        (RunError("the disk is full"), 1, "failed", "the disk is full"),
        (KeyboardInterrupt(), 1, "stopped", "KeyboardInterrupt"),
        (UserError("x is wrong"), 2, "failed", "x is wrong"),
        (UserError("x is wrong"), 1, "", ""),  # a mistake that the first round has found leaves no file
        (UserError("x is wrong"), 0, "", ""),
    ],
)
def test_an_exception_is_recorded_and_goes_on(path, error, rows, status, reason):
    recorder = Recorder(path, ATTRS, 4)

    def run():
        with recorder:
            for k in range(rows):
                recorder.row(row(k), None)
            raise error

    with pytest.raises(type(error)):
        run()
    assert not recorder.file
    assert path.exists() == bool(status)
    if status:
        result = load(path)
        assert (result.status, result.stop_reason) == (status, reason)
        assert len(result.rounds["objective"]) == rows


def test_rows_wait_in_memory_for_a_while_but_those_of_slow_rounds(path, monkeypatch):
    monkeypatch.setattr(record, "FLUSH_SECONDS", 1e9)
    recorder = Recorder(path, ATTRS, 4)
    for k in range(9):
        recorder.row(row(k), None)
    assert len(recorder.file["rounds/round"]) == 1  # row 0 is there at once
    recorder.flush()
    assert len(recorder.file["rounds/round"]) == 9
    monkeypatch.setattr(record, "FLUSH_SECONDS", 0.01)
    for k in range(9, 11):
        time.sleep(0.02)
        recorder.row(row(k), None)
        assert len(recorder.file["rounds/round"]) == k + 1


def test_fast_rounds_are_written_many_at_a_time(path, monkeypatch):
    monkeypatch.setattr(record, "FLUSH_SECONDS", 1e9)
    counts = []
    plain = Recorder._write
    monkeypatch.setattr(Recorder, "_write", lambda recorder: counts.append(recorder.count) or plain(recorder))
    with Recorder(path, ATTRS, 128) as recorder:
        for k in range(5_000):
            recorder.row(row(k), None)
        assert 1 < len(counts) < 8  # a thousand rows a time
    assert len(load(path).rounds["round"]) == 5_000
    assert recorder.io_seconds > 0


WRITER = """
import sys, time
import numpy as np
from mpifed.results import provenance
from mpifed.results import recorder as record

record.FLUSH_SECONDS = 0.01
rng = np.random.default_rng(0)
recorder = record.Recorder(sys.argv[1], {"config": ""}, 64)
for k in range(10**9):
    late = {"snr": k} if k > 9 else {}
    recorder.row({"objective": k, "uploads": k, "compute_seconds": k, **late}, rng.permutation(64)[: 8 + k % 20])
    time.sleep(0.002)
"""


def test_a_reader_follows_a_file_that_is_being_written(path):
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen([sys.executable, "-c", WRITER, path], env=environment)
    try:
        seen, opened = [], 0
        deadline = time.monotonic() + 20
        while len(set(seen)) < 4 and time.monotonic() < deadline:
            assert process.poll() is None
            if path.exists() and path.stat().st_size > 20_000:
                with contextlib.suppress(OSError), h5py.File(path, "r") as file:
                    opened += file.attrs["status"] == "running"
                objectives = load(path).rounds.get("objective", [])
                seen.append(len(objectives))
                assert list(objectives) == list(range(seen[-1]))
            time.sleep(0.03)
        assert len(set(seen)) >= 4
        assert opened > len(seen) / 2  # now and then the file changes while it is being opened
        assert seen == sorted(seen)
    finally:
        process.kill()
        process.wait()


ELSEWHERE = """
import sys, h5py
for mode in ("r", "a"):
    try:
        with h5py.File(sys.argv[1], mode) as file:
            print(mode, file.attrs["status"])
    except OSError as error:
        print(mode, "unable to lock" in str(error))
"""


def test_a_file_that_is_being_written_is_open_to_readers_and_closed_to_writers_of_any_program(path):
    with Recorder(path, ATTRS, 4) as recorder:
        recorder.row(row(0), None)
        recorder.flush()
        done = execute([sys.executable, "-c", ELSEWHERE, path], HDF5_USE_FILE_LOCKING="TRUE")
        assert done.out.split("\n")[:2] == ["r running", "a True"], done
        load(path)
        h5py.File(path, "r").close()  # a lock of the process, not of the open file, would be gone now
        with pytest.raises(UserError, match=r"out\.h5 is being written by another run"):
            Recorder(path, ATTRS, 4, force=True)
    with h5py.File(path, "r"):  # who reads is no writer
        Recorder(path, ATTRS, 4, force=True).finish("finished", "")


def test_a_thread_that_ends_a_run_leaves_all_rows_and_nothing_is_written_after_it(path):
    recorder = Recorder(path, ATTRS, 4)
    recorder.row(row(0), None)
    recorder.row(row(1), None)
    ending = threading.Thread(target=recorder.abandon, args=("h2 is silent",))
    ending.start()
    ending.join()
    threading.Thread(target=recorder.row, args=(row(2), None), daemon=True).start()
    time.sleep(0.1)
    result = load(path)
    assert (result.status, result.stop_reason, result.cr) == ("failed", "h2 is silent", 1)
