"""The ranks of a run in its summary: threads, the CPUs that they are bound to, and how much memory to ask for."""

import re

import numpy as np
import pytest

from mpifed.report.ranks import MIB, binding, option, peaks, per_cpu, ranks
from mpifed.report.summary import show
from tests.helpers.recorded_runs import detailed


def told(cpus, hosts=None, threads=None):
    """The line about ranks with these CPUs, hosts and threads."""
    result = detailed(ranks=len(cpus))
    result.ranks["cpus"] = np.array(cpus, object)
    result.ranks["threads"] = np.array(threads or [1] * len(cpus))
    result.ranks["hostname"] = np.array(hosts or ["node1.example"] * len(cpus), object)
    (line,) = binding(result)
    assert ranks(result, 16)[1] == line
    return line.strip()


@pytest.mark.parametrize(
    ("cpus", "hosts", "threads", "line"),
    [
        (["0-3"], None, None, "1 thread; may use CPUs 0-3"),
        (["0-3"], None, [4], "4 threads; may use CPUs 0-3"),
        (["0-1"] * 3, None, None, "1 thread a rank; not bound: 3 ranks share CPUs 0-1"),
        (["0", "1"], None, None, "1 thread a rank; bound to CPUs 0 | 1"),
        (["0", "1", "1"], None, None, "1 thread a rank; bound, but not each to its own: 2 ranks share CPUs 1"),
        (["0-7", "0-7"], ["a", "b"], [2, 8], "2 to 8 threads a rank; may use CPUs 0-7"),
        (["0-7"] * 3, ["a", "b.eu", "b.eu"], None, "1 thread a rank; not bound: 2 ranks share CPUs 0-7 on b"),
        ([""], None, None, "1 thread"),
    ],
)
def test_threads_and_binding_are_a_line(cpus, hosts, threads, line):
    assert told(cpus, hosts, threads) == line


def test_many_cpus_do_not_break_the_line_and_a_file_that_does_not_tell_has_none():
    line = told([str(k) for k in range(0, 200, 2)])
    assert len(line) <= 85
    assert line.startswith("1 thread a rank; bound to CPUs 0 | 2 | ")
    assert line.endswith(" …")
    assert binding(detailed()) == []


def test_a_quarter_more_than_the_largest_peak_in_two_digits_is_asked_for_each_cpu_of_a_rank():
    asked = {1: 2, 79: 99, 80: 100, 81: 110, 100: 130, 800: 1000, 801: 1100, 5000: 6300}
    assert {peak: per_cpu(np.array([0.2, peak, 0.5]) * MIB) for peak in asked} == asked
    for peak in np.geomspace(1, 1e6, 50):
        assert 1.25 * peak <= per_cpu(np.array([peak]) * MIB) <= 1.25 * peak * 1.1 + 1
    assert option(np.array([800.0]) * MIB, 4) == "--mem-per-cpu=250M"
    assert option(np.zeros(3)) == option(np.zeros(0)) == "", "nothing was measured"


def test_memory_that_a_machine_has_once_is_asked_for_once():
    ranks = {
        "max_rss_bytes": np.array([300.0, 300, 300, 300]) * MIB,
        "shared_bytes": np.array([200.0, 200, 200, 400]) * MIB,
        "hostname": np.array(["a", "a", "b", "a"]),
    }
    assert np.array_equal(peaks(ranks), np.array([100 + 200 / 3, 100 + 200 / 3, 300, 0 + 300 / 3]) * MIB)
    del ranks["shared_bytes"]  # of a file of an earlier version
    assert np.array_equal(peaks(ranks), ranks["max_rss_bytes"])


def test_the_summary_of_several_ranks_has_the_option_and_that_of_one_has_not():
    for size in (2, 3, 1000):
        result = detailed(ranks=size)
        (found,) = re.findall(r"peak memory; ask for (--mem-per-cpu=\d+M)$", show(result), re.M)
        assert found == option(result.ranks["max_rss_bytes"])
    assert "--mem-per-cpu" not in show(detailed(ranks=1))
