"""Curves over seeds, their bands, and the error above the optimum."""

import numpy as np
import pytest

from mpifed.report import curves, plot
from mpifed.report.settings import group_runs
from tests.helpers.figures import axes_of, curve, grid, heading, legend, panel
from tests.helpers.recorded_runs import recorded


def bands(axis):
    """Least and greatest y of every band at every x."""
    outlines = [area.get_paths()[0].vertices for area in axis.collections]
    return [
        {x: (points[points[:, 0] == x, 1].min(), points[points[:, 0] == x, 1].max()) for x in points[:, 0]}
        for points in outlines
    ]


def seeds(*ends, **options):
    return [recorded(seed=seed, objective=values, **options) for seed, values in enumerate(ends)]


def test_seeds_are_one_curve_geometric_on_a_logarithmic_axis_and_x_may_be_seconds_unless_it_goes_back():
    assert curve(panel(grid(2.0, 1.0))) == [[0, 1, 2], [8, 4, 2.5]]
    axis = panel(seeds((100.0, 0.01), (100.0, 0.04)))
    assert curve(axis)[1] == pytest.approx([100, 0.02])
    runs = [recorded(seed=s, seconds=1.0 + s, objective=(8.0, 4.0, 0.0)) for s in range(2)]
    assert curve(panel(runs, x="seconds", log="none")) == [[0, 1, 2, 4], [8, 5, 2, 0]]
    back = [recorded(seed=s, columns={"accuracy": (0.1, 0.5, 0.3)}) for s in range(2)]
    assert len(panel(back, x="accuracy").get_lines()) == 2
    rng = np.random.default_rng(0)
    many = [(np.cumsum(rng.random(500)), np.ones(500)) for _ in range(5)]
    assert len(curves.average_curves(many, [True] * 5, log=True).x) <= curves.POINTS


FEW, MANY = grid(2.0, 1.0), seeds(*((20.0, 10.0 + s) for s in range(11)))
FOUR = [recorded(seed=s, k0=k, objective=(8.0, k + s)) for k in range(1, 5) for s in range(2)]


@pytest.mark.parametrize(
    ("runs", "kind", "ends", "told"),
    [
        (FEW, None, [(2, 3), (1, 2)], "mean and min–max of 2 runs"),
        (FEW, "none", [], "mean of 2 runs"),
        (seeds(*((8.0, 4.0 + s) for s in range(3))), "sd", [(4, 6)], "mean ± standard deviation of 3 runs"),
        (seeds((100.0, 0.01), (100.0, 0.04)), None, [(0.01, 0.04)], "geometric mean and min–max of 2 runs"),
        (MANY, None, [(11, 19)], "mean and 10–90 % of 11 runs"),  # without the outermost
        (FOUR, None, [], "mean of 2 runs"),
        (FOUR, "minmax", [(k, k + 1) for k in range(1, 5)], "mean and min–max of 2 runs"),
        (FOUR[:6], None, [(k, k + 1) for k in range(1, 4)], "mean and min–max of 2 runs"),
    ],
)
def test_bands_are_of_the_kind_that_is_asked_for_or_of_up_to_three_curves(runs, kind, ends, told):
    figure = plot.plot_lines(runs, band=kind)
    (axis,) = axes_of(figure)
    last = curve(axis)[0][-1]
    assert [band[last] for band in bands(axis)] == [pytest.approx(end) for end in ends]
    assert heading(figure) == told
    assert runs != FEW or legend(figure) == ["k₀ = 5", "k₀ = 10"]


def test_a_run_that_finished_keeps_its_last_value_and_another_does_not():
    for status, means in (("finished", [8, 5, 4]), ("failed", [8, 5, 2])):
        runs = [recorded(objective=(8.0, 4.0, 2.0)), recorded(seed=1, objective=(8.0, 6.0), status=status)]
        assert curve(panel(runs, everything=True))[1] == means
    runs = [recorded(seed=s, objective=(8.0,) * (3 - s), columns={"compute_seconds": (3 * s,) * 3}) for s in (0, 1)]
    assert curve(panel(runs, y=["compute_seconds"]))[1] == [1.5, 1.5, 0]  # a number of each round ends with it


def test_the_error_is_above_the_optimum_or_else_the_least_objective_found_on_the_same_data():
    axis = panel([recorded(columns={"objective_gap": (7.0, 3.0, 1.0)})], y=["error"])
    assert (axis.get_ylabel(), curve(axis)[1]) == ("f − f*", [7, 3, 1])
    runs = [recorded(k0=k, objective=(8.0, end)) for k, end in ((5, 2.5), (10, 2.0))]
    runs.append(recorded(k0=10, objective=(9.0, 1.0), seed=1))  # the seed makes the data
    axis = panel(runs, y=["error"], log="none")
    assert axis.get_ylabel() == "f − least f found"
    assert [curve(axis, k)[1] for k in (0, 1)] == [[6, 0.5], [7, 0]]
    axis = panel([recorded(objective=(8.0, 1.01, 1.0))], y=["error"])
    assert (axis.get_yscale(), curve(axis)[0]) == ("log", [0, 1, 2])  # the nought of the best run does not forbid it
    runs = seeds((8.0, 2.0), (8.0, 1.0), config={"data": {"seed": 7}})
    assert curve(panel(runs, y=["error"], log="none"))[1] == [7, 0.5]


def test_the_error_is_drawn_unasked_where_f_differs_between_seeds_and_methods_are_compared():
    both = ("fedgia", "fedavg")
    for methods, start, drawn in ((both, 1.0, "error"), (both, 0.0, "objective"), (both[:1], 1.0, "objective")):
        points = [(name, s, (8.0 + start * s, 4.0, 1.0 + k)) for k, name in enumerate(methods) for s in range(2)]
        runs = [recorded(name=name, seed=s, objective=values) for name, s, values in points]
        assert curves.default_metric(runs, group_runs(runs)) == drawn
