"""A curve that lies under another shows."""

import numpy as np
import pytest

from mpifed.report import plot
from mpifed.report.overlap import Pile, find_piles
from tests.helpers.figures import axes_of
from tests.helpers.recorded_runs import recorded


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
