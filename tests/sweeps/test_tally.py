"""The count of a sweep: every kind of failure is told once, with its number."""

from mpifed.sweeps.grid import points
from mpifed.sweeps.overall import Overall
from mpifed.sweeps.runs import FAILED, FINISHED, Ended
from mpifed.sweeps.tally import Line, Tally
from tests.sweeps.conftest import SMALL


def test_the_summary_says_what_failed_and_equal_failures_once():
    found = points({}, SMALL, ["seed=0:10"])
    tally = Tally(found, Overall(None, [point.cost for point in found]))
    lines = []
    for k, point in enumerate(found):
        reason = "a disk is gone" if k == 1 else "f diverges"
        ended = Ended(point, FAILED, reason, 0.1) if k else Ended(point, FINISHED, "4 rounds", 0.1)
        lines += tally.over(ended)
    assert lines == [
        Line("seed=0.h5  4 rounds"),
        Line("seed=1.h5  failed: a disk is gone", False),
        Line("seed=2.h5  failed: f diverges", False),
    ]
    assert list(tally.summary()) == [
        Line("8 points failed: f diverges; first: seed=2", False),
        Line(
            "1 of 10 finished, 9 failed: seed=1; seed=2; seed=3; seed=4; seed=5 and 4 more; run the same command "
            "again to continue",
            False,
        ),
    ]


def test_the_time_left_follows_from_costs_and_what_they_took():
    progress = Overall(None, [1.0, 1.0, 2.0])
    assert progress.head() == "0 of 3"
    progress.over(1.0, None)
    assert progress.head() == "1 of 3"
    progress.over(1.0, 30.0)
    assert progress.head() == "2 of 3, about 60 s left"
