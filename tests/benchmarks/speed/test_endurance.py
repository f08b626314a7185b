"""The benchmark of long runs: what it measures, what it prints, and that a run passes it."""

from __future__ import annotations

import mmap
import subprocess
import sys

import pytest

from benchmarks.speed.endurance import GOAL, Mark, line, marked, resident


def test_resident_memory_is_that_of_this_process():
    """A mapping of its own, as an array may lie in memory that was freed before, and so add nothing."""
    size = 1 << 28
    before = resident()
    with mmap.mmap(-1, size) as held:
        for page in range(0, size, mmap.PAGESIZE):
            held[page] = 1
        after = resident()
    assert 0.9 * size < after - before < 1.1 * size
    assert resident() < after - 0.9 * size


def test_marks_are_the_warm_up_and_a_tenth_at_either_end():
    assert marked(21_000) == [1000, 3000, 19_000, 21_000]


def test_a_line_has_the_growth_and_the_seconds_of_rounds_early_and_late():
    marks = [Mark(1000, 50_000_000, 1.0), Mark(3000, 0, 1.2), Mark(19_000, 0, 2.0), Mark(21_000, 55_000_000, 2.6)]
    text, growth = line("run", marks, 4_000_000)
    assert growth == pytest.approx(10)
    assert text.split() == ["run", "21000", "50.0", "55.0", "10.0", "%", "100", "300", "4.0"]


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rounds():
    command = [sys.executable, "-m", "benchmarks.speed.endurance", "--rounds=20000", "--only=every 100"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert printed.splitlines()[-1] == f"growth below {GOAL:.0f} %: yes"
