"""The timeline of a run: rounds and ranks."""

import pytest

from mpifed.core.errors import UserError
from mpifed.report import timeline
from tests.helpers.figures import axes_of, legend
from tests.helpers.recorded_runs import recorded


def heights(axis):
    """part by part: the heights of its bars."""
    return [[bar.get_height() for bar in container] for container in axis.containers]


def test_a_timeline_has_rounds_and_ranks():
    figure = timeline.timeline(recorded(ranks=3))
    rounds, ranks = axes_of(figure)
    assert legend(figure) == ["compute", "server", "communication", "waiting", "evaluation", "writing"]
    assert (rounds.get_xlabel(), rounds.get_ylabel()) == ("round", "s per round")
    assert (ranks.get_xlabel(), ranks.get_ylabel()) == ("rank", "s in total")
    assert heights(rounds) == [[0.25] * 2, [0.125] * 2, [0.0625] * 2, [2.0] * 2]  # round 0 is no round of work
    assert heights(ranks) == [[0, 0.5, 1], [0.375, 0, 0], [0.5] * 3, [1, 0.5, 0], [0.25] * 3, [0.125, 0, 0]]


@pytest.mark.parametrize(("ranks", "rounds"), [(1, 1), (1, 3), (4, 2), (40, 8)])
def test_ranks_and_rounds_are_counted_in_whole_numbers_without_others_between(ranks, rounds):
    figure = timeline.timeline(recorded(ranks=ranks, objective=[1.0] * (rounds + 1)))
    figure.draw_without_rendering()
    for axis, least, most in zip(axes_of(figure), (1, 0), (rounds, ranks - 1), strict=True):
        low, high = axis.get_xlim()
        ticks = [tick for tick in axis.get_xticks() if low <= tick <= high]
        assert ticks
        assert all(tick == round(tick) and least <= tick <= most for tick in ticks)


def test_many_rounds_are_summed_up_and_a_run_without_ranks_has_its_rounds(tmp_path):
    figure = timeline.timeline(recorded(tmp_path / "out.h5", objective=[1.0] * 202, status="running"))
    (axis,) = axes_of(figure)
    assert axis.get_xlabel() == "round (bars: means of 5)"
    assert [len(bars) for bars in heights(axis)] == [41] * 4
    assert set(heights(axis)[0]) == {0.25}
    with pytest.raises(UserError, match="there is nothing to draw: the result has no times of a round"):
        timeline.timeline(recorded(objective=[1.0]))
