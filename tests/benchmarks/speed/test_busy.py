"""A measurement with a copy on each core at once."""

from __future__ import annotations

import os
import time
from functools import partial

import pytest

from benchmarks.speed import busy


def logging(folder):
    """A repetition that notes when it ended; those of the process that comes first take ten times as long."""
    try:
        (folder / "slow").touch(exist_ok=False)
        seconds = 0.1
    except FileExistsError:
        seconds = 0.01

    def run():
        begun = time.monotonic()
        time.sleep(seconds)
        with (folder / str(os.getpid())).open("a") as file:
            print(time.monotonic(), file=file)
        return os.getpid(), begun

    return run


def place():
    return lambda: (os.getpid(), sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None)


def broken(when):
    if when == "preparing":
        raise ZeroDivisionError("nothing to measure")
    return lambda: 1 / 0


def test_each_copy_is_a_process_on_a_core_of_its_own():
    cores = busy.cores()
    found = busy.copies(place, 2, cores)
    assert [len(copy) for copy in found] == [2] * len(cores)
    pids = {pid for copy in found for pid, _ in copy}
    assert len(pids) == len(cores)
    assert os.getpid() not in pids
    if hasattr(os, "sched_setaffinity"):
        assert [where for copy in found for _, where in copy[:1]] == [[core] for core in cores]


def test_a_copy_that_is_done_works_on_until_the_last_one_is(tmp_path):
    found = busy.copies(partial(logging, tmp_path), 3, busy.cores()[:1] * 2)
    calls = {pid: (tmp_path / str(pid)).read_text().split() for ((pid, _), *_) in found}
    slow, fast = sorted(calls, key=lambda pid: len(calls[pid]))
    last = {copy[0][0]: copy[-1][1] for copy in found}  # when the last repetition that counts began
    assert len(calls[slow]) == 3 < len(calls[fast])
    assert float(calls[fast][-1]) > last[slow]
    assert abs(found[0][0][1] - found[1][0][1]) < 0.1  # they began together


@pytest.mark.parametrize("when", ["preparing", "measuring"])
def test_an_error_in_a_copy_is_raised_here(when):
    with pytest.raises(ZeroDivisionError):
        busy.copies(partial(broken, when), 1, busy.cores()[:2])
