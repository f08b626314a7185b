"""Labels of logarithmic axes: none lies on another."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.dots import dots
from benchmarks.grid import Cell
from mpifed.report import axes, style


def labels(axis):
    """The horizontal axis's labels as they are drawn, and their boxes, from left to right."""
    figure = axis.get_figure()
    figure.draw_without_rendering()
    left, right = axis.get_xlim()
    shown = [tick.label1 for tick in axis.xaxis.get_major_ticks() if left <= tick.get_loc() <= right]
    shown += [tick.label1 for tick in axis.xaxis.get_minor_ticks() if left <= tick.get_loc() <= right]
    boxes = [(text.get_window_extent(), text.get_text()) for text in shown if text.get_text()]
    boxes.sort(key=lambda pair: pair[0].x0)
    return [text for _, text in boxes], all(a.x1 < b.x0 for (a, _), (b, _) in pairwise(boxes))


@pytest.mark.parametrize("least", [1.1e5, 9e5, 0.0098])
def test_the_label_of_the_first_power_of_ten_is_not_on_that_of_zero(least):
    with style.matplotlib_style():
        _, places = style.make_canvas(pytest.importorskip("matplotlib"), style.DOUBLE, 1, 3, "three panels", 0)
        axis = places.flat[0]
        x = np.array([0.0, least, 1e4 * least])
        axis.plot(x, x)
        axes.set_log_x(axis, [x])
        found, apart = labels(axis)
    assert apart
    assert found[0] == "$\\mathdefault{0}$"
    assert len(found) >= 3


@pytest.mark.parametrize(
    ("low", "high", "shown"),
    [(2.0, 46.0, ["2", "5", "10", "20", "50"]), (14.0, 180.0, ["20", "50", "100", "200"]), (2.0, 300.0, 2)],
)
def test_panels_of_dots_have_labels_apart_whatever_their_range(low, high, shown):
    pytest.importorskip("matplotlib")
    cells = [Cell(block, row, None) for block in "abc" for row in ("one", "two")]
    ends = {"one": np.array([low]), "two": np.array([high])}
    samples = {(cell, "rounds"): SimpleNamespace(known=ends[cell.row], unreached=0) for cell in cells}
    figure = dots(SimpleNamespace(samples=samples), SimpleNamespace(y=["rounds"], title="t", log="x"), cells)
    for axis in figure.get_axes():
        found, apart = labels(axis)
        assert apart
        assert found == shown or len(found) == shown
