"""Curves over seeds, and the error above the optimum."""

import numpy as np
import pytest

from mpifed.report import curves, plot
from mpifed.report.settings import group_runs
from tests.helpers.figures import axes_of, curve, grid, legend
from tests.helpers.recorded_runs import recorded


def bands(axis):
    """Least and greatest y of every band at every x."""
    outlines = [area.get_paths()[0].vertices for area in axis.collections]
    return [
        {x: (points[points[:, 0] == x, 1].min(), points[points[:, 0] == x, 1].max()) for x in points[:, 0]}
        for points in outlines
    ]


def test_seeds_are_one_curve_on_a_band_from_least_to_greatest_of_ten_without_the_outermost():
    figure = plot.plot_lines(grid(2.0, 1.0))
    (axis,) = axes_of(figure)
    assert legend(figure) == ["k₀ = 5", "k₀ = 10"]
    assert figure.legends[0].get_title().get_text() == "mean and min–max of 2 runs"
    assert curve(axis, 0) == [[0, 1, 2], [8, 4, 2.5]]
    assert [band[2.0] for band in bands(axis)] == [(2, 3), (1, 2)]
    figure = plot.plot_lines([recorded(seed=s, objective=(100.0, end)) for s, end in enumerate((0.01, 0.04))])
    (axis,) = axes_of(figure)
    assert curve(axis)[1] == pytest.approx([100, 0.02])  # the geometric mean on a logarithmic axis
    assert "geometric mean and min–max" in figure.get_suptitle()
    figure = plot.plot_lines([recorded(seed=s, objective=(20.0, 10.0 + s)) for s in range(11)])
    assert bands(axes_of(figure)[0])[0][1.0] == (11, 19)
    assert "10–90 %" in figure.get_suptitle()


def test_a_run_that_finished_keeps_its_last_value_and_another_does_not():
    for status, means in (("finished", [8, 5, 4]), ("failed", [8, 5, 2])):
        runs = [recorded(seed=0, objective=(8.0, 4.0, 2.0)), recorded(seed=1, objective=(8.0, 6.0), status=status)]
        assert curve(axes_of(plot.plot_lines(runs, everything=True))[0])[1] == means
    runs = [recorded(seed=s, objective=(8.0,) * (3 - s), columns={"compute_seconds": (3 * s,) * 3}) for s in (0, 1)]
    (axis,) = axes_of(plot.plot_lines(runs, y=["compute_seconds"]))
    assert curve(axis)[1] == [1.5, 1.5, 0]  # a number of each round ends with it


def test_curves_are_averaged_at_equal_x_unless_x_goes_back_and_have_few_points():
    runs = [recorded(seed=s, seconds=1.0 + s, objective=(8.0, 4.0, 0.0)) for s in range(2)]
    (axis,) = axes_of(plot.plot_lines(runs, x="seconds", log="none"))
    assert curve(axis) == [[0, 1, 2, 4], [8, 5, 2, 0]]
    runs = [recorded(seed=s, columns={"accuracy": (0.1, 0.5, 0.3)}) for s in range(2)]
    (axis,) = axes_of(plot.plot_lines(runs, x="accuracy"))
    assert len(axis.get_lines()) == 2
    rng = np.random.default_rng(0)
    many = [(np.cumsum(rng.random(500)), np.ones(500)) for _ in range(5)]
    assert len(curves.average_curves(many, [True] * 5, log=True).x) <= curves.POINTS


def test_the_error_is_above_the_optimum_or_else_the_least_objective_found_on_the_same_data():
    (axis,) = axes_of(plot.plot_lines([recorded(columns={"objective_gap": (7.0, 3.0, 1.0)})], y=["error"]))
    assert axis.get_ylabel() == "f − f*"
    assert curve(axis)[1] == [7, 3, 1]
    runs = [recorded(k0=k, objective=(8.0, end)) for k, end in ((5, 2.5), (10, 2.0))]
    runs.append(recorded(k0=10, objective=(9.0, 1.0), seed=1))  # the seed makes the data
    (axis,) = axes_of(plot.plot_lines(runs, y=["error"], log="none"))
    assert axis.get_ylabel() == "f − least f found"
    assert curve(axis, 0)[1] == [6, 0.5]
    assert curve(axis, 1)[1] == [7, 0]
    (axis,) = axes_of(plot.plot_lines([recorded(objective=(8.0, 1.01, 1.0))], y=["error"]))
    assert axis.get_yscale() == "log"  # the nought of the best run does not forbid it
    assert curve(axis)[0] == [0, 1, 2]
    same = {"data": {"seed": 7}}
    runs = [recorded(seed=s, objective=(8.0, 2.0 - s), config=same) for s in range(2)]
    (axis,) = axes_of(plot.plot_lines(runs, y=["error"], log="none"))
    assert curve(axis)[1] == [7, 0.5]


def test_bands_are_of_the_kind_that_is_asked_for_and_of_up_to_three_curves():
    for kind, number, said in (("none", 0, "mean of"), ("sd", 2, "± standard")):
        figure = plot.plot_lines(grid(2.0, 1.0), band=kind)
        assert len(axes_of(figure)[0].collections) == number
        assert said in figure.legends[0].get_title().get_text()
    figure = plot.plot_lines([recorded(seed=s, objective=(8.0, 4.0 + s)) for s in range(3)], band="sd")
    assert bands(axes_of(figure)[0])[0][1.0] == pytest.approx((4, 6))
    runs = [recorded(seed=s, k0=k, objective=(8.0, k + s)) for k in range(1, 5) for s in range(2)]
    assert not axes_of(plot.plot_lines(runs))[0].collections
    assert len(axes_of(plot.plot_lines(runs, band="minmax"))[0].collections) == 4
    assert len(axes_of(plot.plot_lines(runs[:6]))[0].collections) == 3


def test_the_error_is_drawn_unasked_where_f_differs_between_seeds_and_methods_are_compared():
    both = ("fedgia", "fedavg")
    for methods, start, drawn in ((both, 1.0, "error"), (both, 0.0, "objective"), (both[:1], 1.0, "objective")):
        points = [(name, s, (8.0 + start * s, 4.0, 1.0 + k)) for k, name in enumerate(methods) for s in range(2)]
        runs = [recorded(name=name, seed=s, objective=values) for name, s, values in points]
        assert curves.default_metric(runs, group_runs(runs)) == drawn
