"""Boxes over a setting."""

from __future__ import annotations

import pytest

from mpifed.report import boxplot
from mpifed.report.groups import finished
from tests.helpers.figures import axes_of, grid, legend
from tests.helpers.recorded_runs import recorded


def test_boxes_over_a_setting():
    figure = boxplot.box([*grid(2.0, 1.0), *(recorded(seed=s, k0=10, name="fedadmm") for s in range(3))], "k0")
    (axis,) = axes_of(figure)
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("algorithm.k0", "objective")
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["5", "10"]
    assert legend(figure) == ["fedadmm", "fedgia"]
    assert len(axis.patches) == 3
    points = sorted(tuple(line.get_ydata().tolist()) for line in axis.get_lines() if line.get_linestyle() == "None")
    assert points == [(1, 2), (2, 2, 2), (2, 3)]


@pytest.mark.parametrize(
    ("y", "label"),
    [
        ("rounds", "CR"),
        ("tct", "TCT (s)"),
        ("elapsed_seconds", "time (s)"),
        ("bytes", "up + down (kB)"),
        ("error", "f − least f found"),
    ],
)
def test_boxes_of_any_measure(y, label):
    (axis,) = axes_of(boxplot.box(grid(2.0, 1.0), "algorithm.k0", y))
    assert axis.get_ylabel() == label


def test_boxes_leave_out_what_did_not_finish():
    runs = [*grid(2.0, 1.0), recorded(k0=99, status="failed")]
    assert len(axes_of(boxplot.box(finished(runs), "k0"))[0].patches) == 2
    assert len(axes_of(boxplot.box(runs, "k0"))[0].patches) == 3
