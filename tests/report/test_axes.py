"""Axes: no label of a logarithmic one lies on another, and a curve that lies under another shows."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.grid import Cell
from benchmarks.pictures import dots
from mpifed.report import axes, plot, style
from mpifed.report.axes import Pile, find_piles
from tests.helpers.figures import axes_of
from tests.helpers.recorded_runs import recorded


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


@pytest.mark.parametrize("least", [1.1e5, pytest.param(9e5, marks=pytest.mark.slow), 0.0098])
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
    [
        (2.0, 46.0, ["2", "5", "10", "20", "50"]),
        pytest.param(14.0, 180.0, ["20", "50", "100", "200"], marks=pytest.mark.slow),
        (2.0, 300.0, 2),
    ],
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


def pixels(figure, colour):
    """How many pixels below the legend have about this colour."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    picture = np.asarray(canvas.buffer_rgba())[..., :3].astype(int)
    below = picture[picture.shape[0] - int(axes_of(figure)[0].get_window_extent().y1) :]
    wanted = [int(colour[k : k + 2], 16) for k in (1, 3, 5)]
    return int((np.abs(below - wanted).max(axis=-1) < 40).sum())


@pytest.mark.parametrize(("rounds", "methods"), [(60, ("fedavg", "scaffold")), (9, ("extra", "fedgia", "scaffold"))])
def test_curves_that_lie_exactly_on_one_another_all_show(methods, rounds):
    runs = [recorded(name=name, objective=8.0 / (1 + np.arange(rounds))) for name in methods]
    figure = plot.plot_lines(runs, log="y")
    colours = [line.get_color() for line in axes_of(figure)[0].get_lines()]
    counts = [pixels(figure, colour) for colour in colours]
    assert min(counts) > 0.1 * max(counts), "each is a good part of what is seen"
    marks = [set(line.get_markevery()) for line in axes_of(figure)[0].get_lines()]
    assert not set.intersection(*marks)


def test_a_pile_is_made_of_curves_that_agree_at_half_of_their_points():
    x = np.arange(9.0)
    line = (x, x)
    near = (x[::2], x[::2] + 0.01)
    half, less = ((x, np.where(x < agreed, x, 20)) for agreed in (5, 4))
    assert find_piles([line, near, half], False, [0.3, 0.0, 0.6]) == [Pile(3, 1, 1), Pile(3, 0, 2), Pile(3, 2, 0)]
    assert find_piles([line, near, less], False, [0.3, 0.0, 0.6]) == [Pile(2, 1, 0), Pile(2, 0, 1), Pile()]
    assert find_piles([line, (x, x + 2), None, (x[::-1], x)], False, [0.0] * 4) == [Pile()] * 4
    small = (x, 1e-6 * (1 + x))
    assert find_piles([small, (x, small[1] / 10), (x, np.full(9, 1.0))], False, [0.0] * 3)[0].size == 2
    assert find_piles([small, (x, small[1] / 10)], True, [0.0] * 2) == [Pile()] * 2
    widths = [Pile(3, k, 2 - k).width(1.0) for k in range(3)]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] == Pile().width(1.0) == 1.0
