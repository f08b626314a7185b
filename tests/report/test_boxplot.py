"""Boxes over a setting."""

import pytest

from mpifed.core.errors import UserError
from mpifed.report import boxplot, palette
from mpifed.report.axes import FLOOR
from mpifed.report.settings import group_runs
from tests.helpers.figures import axes_of, grid, legend, ticks
from tests.helpers.recorded_runs import recorded

to_hex = pytest.importorskip("matplotlib.colors").to_hex


def boxes(runs, key="algorithm", *words, **options):
    """The panel of boxes and its legend, empty without one."""
    figure = boxplot.plot_boxes(runs, key, *words, **options)
    return axes_of(figure)[0], legend(figure) if figure.legends else []


def points(axis, part):
    """The x or y of the runs of each box."""
    return [list(getattr(line, f"get_{part}data")()) for line in axis.get_lines() if line.get_linestyle() == "None"]


def test_boxes_over_a_setting_also_of_runs_that_did_not_finish():
    axis, names = boxes([*grid(2.0, 1.0), *(recorded(seed=s, k0=10, name="fedadmm") for s in range(3))], "k0")
    assert (axis.get_xlabel(), axis.get_ylabel(), ticks(axis)) == ("k₀", "objective", ["5", "10"])
    assert (names, len(axis.patches)) == (["FedADMM", "FedGiA"], 3)
    assert sorted(points(axis, "y")) == [[1, 2], [2, 2, 2], [2, 3]]
    runs = [*grid(2.0, 1.0), recorded(k0=99, status="failed")]
    assert [len(boxes(runs, "k0", everything=everything)[0].patches) for everything in (True, False)] == [3, 2]


def test_boxes_of_any_measure_that_a_run_has():
    runs = grid(2.0, 1.0)
    labels = {"rounds": "CR", "tct": "TCT (s)", "elapsed_seconds": "time (s)", "bytes": "up + down (kB)"}
    for y, label in (labels | {"error": "f − least f found"}).items():
        assert boxplot.collect_boxes(runs, group_runs(runs), "algorithm.k0", y)[1] == label
    assert boxes(runs, "algorithm.k0", y)[0].get_ylabel() == label
    with pytest.raises(UserError, match="there is nothing to draw: no run has a value of accuracy"):
        boxes([recorded(columns={"accuracy": (float("nan"),) * 3})], "k0", "accuracy")


def test_the_best_method_stays_on_a_logarithmic_axis_though_it_reached_0():
    ends = {5: 0.0, 10: 1e-5}
    runs = [recorded(seed=s, k0=k, columns={"objective_gap": (3.0, 1.0, ends[k])}) for s in range(3) for k in ends]
    axis, _ = boxes(runs, "k0", "error", log="y")
    (arrow,) = (line for line in axis.get_lines() if line.get_gid() == FLOOR)
    assert (len(axis.patches), arrow.get_xdata().tolist(), arrow.get_ydata()[0] < 1e-5) == (2, [0], True)


def test_boxes_stand_in_the_middle_where_others_are_lacking_and_have_the_colours_of_methods():
    runs = [recorded(seed=s, name="fedavg") for s in range(2)]
    axis, names = boxes([*runs, *(recorded(seed=s, k0=k) for s in range(2) for k in (5, 10))])
    assert [x[0] for x in points(axis, "x")] == pytest.approx([0, 0.8, 1.2])
    assert names == ["k₀ = 5", "k₀ = 10"]
    assert len(boxes([recorded(k0=k, t=t) for k in (5, 10) for t in (0.1, 0.2)])[1]) == 4
    axis, _ = boxes([*runs, *(recorded(seed=s, name="scaffold") for s in range(2))])
    edges = [to_hex(box.get_edgecolor()).upper() for box in axis.patches]
    assert edges == [palette.method_style(name).colour for name in ("fedavg", "scaffold")]
    assert ticks(axis) == ["FedAvg", "SCAFFOLD"]
