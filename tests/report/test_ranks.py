"""The ranks of a run in its summary: threads and the CPUs that they are bound to, in words."""

import numpy as np
import pytest

from mpifed.report.ranks import binding, ranks
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
