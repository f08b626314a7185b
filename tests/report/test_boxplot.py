"""Boxes over a setting."""

import pytest

from mpifed.core.errors import UserError
from mpifed.report import boxplot, palette
from mpifed.report.axes import FLOOR
from mpifed.report.settings import group_runs
from tests.helpers.figures import axes_of, grid, legend
from tests.helpers.recorded_runs import recorded

to_hex = pytest.importorskip("matplotlib.colors").to_hex


def test_boxes_over_a_setting_also_of_runs_that_did_not_finish():
    figure = boxplot.plot_boxes([*grid(2.0, 1.0), *(recorded(seed=s, k0=10, name="fedadmm") for s in range(3))], "k0")
    (axis,) = axes_of(figure)
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("k₀", "objective")
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["5", "10"]
    assert legend(figure) == ["FedADMM", "FedGiA"]
    assert len(axis.patches) == 3
    points = sorted(tuple(line.get_ydata().tolist()) for line in axis.get_lines() if line.get_linestyle() == "None")
    assert points == [(1, 2), (2, 2, 2), (2, 3)]
    runs = [*grid(2.0, 1.0), recorded(k0=99, status="failed")]
    assert len(axes_of(boxplot.plot_boxes(runs, "k0", everything=True))[0].patches) == 3
    assert len(axes_of(boxplot.plot_boxes(runs, "k0"))[0].patches) == 2


def test_boxes_of_any_measure_that_a_run_has():
    runs = grid(2.0, 1.0)
    labels = {"rounds": "CR", "tct": "TCT (s)", "elapsed_seconds": "time (s)", "bytes": "up + down (kB)"}
    for y, label in (labels | {"error": "f − least f found"}).items():
        assert boxplot.collect_boxes(runs, group_runs(runs), "algorithm.k0", y)[1] == label
    (axis,) = axes_of(boxplot.plot_boxes(runs, "algorithm.k0", y))
    assert axis.get_ylabel() == label
    with pytest.raises(UserError, match="there is nothing to draw: no run has a value of accuracy"):
        boxplot.plot_boxes([recorded(columns={"accuracy": (float("nan"),) * 3})], "k0", "accuracy")


def test_the_best_method_stays_on_a_logarithmic_axis_though_it_reached_0():
    ends = {5: 0.0, 10: 1e-5}
    runs = [recorded(seed=s, k0=k, columns={"objective_gap": (3.0, 1.0, ends[k])}) for s in range(3) for k in ends]
    (axis,) = axes_of(boxplot.plot_boxes(runs, "k0", "error", log="y"))
    assert len(axis.patches) == 2
    (arrow,) = (line for line in axis.get_lines() if line.get_gid() == FLOOR)
    assert arrow.get_xdata().tolist() == [0]
    assert arrow.get_ydata()[0] < 1e-5


def test_boxes_stand_in_the_middle_where_others_are_lacking_and_have_the_colours_of_methods():
    runs = [recorded(seed=s, name="fedavg") for s in range(2)]
    runs += [recorded(seed=s, k0=k) for s in range(2) for k in (5, 10)]
    figure = boxplot.plot_boxes(runs, "algorithm")
    (axis,) = axes_of(figure)
    points = [line.get_xdata()[0] for line in axis.get_lines() if line.get_linestyle() == "None"]
    assert points == pytest.approx([0, 0.8, 1.2])
    assert legend(figure) == ["k₀ = 5", "k₀ = 10"]
    assert len(legend(boxplot.plot_boxes([recorded(k0=k, t=t) for k in (5, 10) for t in (0.1, 0.2)], "algorithm"))) == 4
    runs = [recorded(seed=s, name=name) for s in range(2) for name in ("fedavg", "scaffold")]
    (axis,) = axes_of(boxplot.plot_boxes(runs, "algorithm"))
    edges = [to_hex(box.get_edgecolor()).upper() for box in axis.patches]
    assert edges == [palette.method_style("fedavg").colour, palette.method_style("scaffold").colour]
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["FedAvg", "SCAFFOLD"]
