"""How much memory a summary suggests to ask for."""

import re

import numpy as np

from mpifed.report.memory import option, peaks, per_cpu
from mpifed.report.summary import show
from tests.helpers.recorded_runs import detailed as run

MIB = 1 << 20


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
    for ranks in (2, 3, 1000):
        result = run(ranks=ranks)
        (found,) = re.findall(r"peak memory; ask for (--mem-per-cpu=\d+M)$", show(result), re.M)
        assert found == option(result.ranks["max_rss_bytes"])
    assert "--mem-per-cpu" not in show(run(ranks=1))
