"""The table of ranks for clients × features in docs/clusters.md, and what it is made of."""

import pytest

from benchmarks.speed import ranks
from tests.helpers.commands import ROOT

ARGS = ranks.parser().parse_args([])
MACHINE = ranks.machine(ARGS)


def test_the_page_has_the_table_of_the_defaults():
    assert ranks.table(MACHINE, ARGS.efficiency, True) in (ROOT / "docs" / "clusters.md").read_text("utf-8")


@pytest.mark.parametrize("reproducible", [True, False])
@pytest.mark.parametrize("n", ranks.FEATURES)
@pytest.mark.parametrize("m", ranks.CLIENTS[:3])
def test_hosts_are_as_efficient_as_asked_and_twice_as_many_are_not(m, n, reproducible):
    best, spent = ranks.most_ranks(MACHINE, m, n, 0.5, reproducible)
    alone = ranks.seconds(MACHINE, 1, m, n, reproducible)
    hosts = best - 1
    assert hosts <= m
    assert spent == ranks.seconds(MACHINE, best, m, n, reproducible)
    assert alone / (hosts * spent) >= 0.5
    if 2 * hosts <= min(m, ranks.MOST):
        assert alone / (2 * hosts * ranks.seconds(MACHINE, 2 * hosts + 1, m, n, reproducible)) < 0.5


def test_a_slow_network_is_worth_fewer_ranks_and_one_process_may_be_the_best():
    slow = ranks.machine(ranks.parser().parse_args(["--latency", "1e-3", "--bandwidth", "1e8"]))
    assert ranks.most_ranks(slow, 10_000, 1000, 0.5, True)[0] < ranks.most_ranks(MACHINE, 10_000, 1000, 0.5, True)[0]
    alone, spent = ranks.most_ranks(slow, 4, 2, 0.5, True)
    assert (alone, spent) == (1, ranks.seconds(slow, 1, 4, 2, True))
