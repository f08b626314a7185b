"""A measurement with a copy on each core at once."""

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
        return os.getpid(), begun, busy.cores()

    return run


def broken(when):
    if when == "preparing":
        raise ZeroDivisionError("nothing to measure")
    return lambda: 1 / 0


def test_copies_are_processes_on_their_cores_and_one_that_is_done_works_on_until_the_last_one_is(tmp_path):
    cores = (busy.cores() * 2)[:2]
    found = busy.copies(partial(logging, tmp_path), 3, cores)
    assert [len(copy) for copy in found] == [3, 3]
    calls = {pid: (tmp_path / str(pid)).read_text().split() for ((pid, *_), *_) in found}
    assert len(calls) == 2
    assert os.getpid() not in calls
    if hasattr(os, "sched_setaffinity"):
        assert [where for (_, _, where), *_ in found] == [[core] for core in cores]
    slow, fast = sorted(calls, key=lambda pid: len(calls[pid]))
    last = {copy[0][0]: copy[-1][1] for copy in found}  # when the last repetition that counts began
    assert len(calls[slow]) == 3 < len(calls[fast])
    assert float(calls[fast][-1]) > last[slow]
    assert abs(found[0][0][1] - found[1][0][1]) < 0.1  # they began together


@pytest.mark.slow
@pytest.mark.parametrize("when", ["preparing", "measuring"])
def test_an_error_in_a_copy_is_raised_here(when):
    with pytest.raises(ZeroDivisionError):
        busy.copies(partial(broken, when), 1, busy.cores()[:2])
