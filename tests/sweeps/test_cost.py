"""The cost of a run, by which a sweep estimates the time that is left."""

from __future__ import annotations

from mpifed.sweeps.overall import Overall


def test_the_time_left_follows_from_costs_and_what_they_took():
    progress = Overall(None, [1.0, 1.0, 2.0])
    assert progress.head() == "0 of 3"
    progress.over(1.0, None)
    assert progress.head() == "1 of 3"
    progress.over(1.0, 30.0)
    assert progress.head() == "2 of 3, about 60 s left"
