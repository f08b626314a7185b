"""Pictures and boxes: what is drawn, what axes and curves are called, and the command."""

import sys

import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.report import boxplot, clients, palette, plot, profile, timeline
from mpifed.report.axes import BASE, FLOOR
from mpifed.report.curves import spans_decades
from mpifed.report.settings import group_runs
from tests.helpers.commands import mpifed
from tests.helpers.figures import axes_of, curve, grid, heading, legend, panel, ticks
from tests.helpers.recorded_runs import recorded

pytest.importorskip("matplotlib")


def test_a_column_is_drawn_against_any_other_but_for_rounds_that_were_not_measured():
    figure = plot.plot_lines([recorded()])
    (axis,) = axes_of(figure)
    assert (axis.get_xlabel(), axis.get_ylabel(), curve(axis)) == ("round", "objective", [[0, 1, 2], [8, 4, 2]])
    assert not figure.legends, "a single run needs no legend"
    assert not figure.get_suptitle()
    result = recorded(columns={"simulated_seconds": (0, 3, 6), "inner_steps": (0, 10, 20)})
    for x, label, last in (
        ("exchanges", "exchanges", 2),
        ("bytes", "up + down (kB)", 8),
        ("bytes_up", "up (kB)", 2),
        ("seconds", "time (s)", 2),
        ("simulated_seconds", "simulated time (s)", 6),
        ("inner_steps", "inner steps", 20),
    ):
        axis = panel([result], x=x)
        assert (axis.get_xlabel(), curve(axis)[0][-1]) == (label, last)
    figure = plot.plot_lines([recorded()], y=["objective", "grad_norm_sq", "comm_seconds"])
    assert [axis.get_ylabel() for axis in axes_of(figure)] == ["objective", "‖∇f‖²", "communication (s)"]
    assert curve(panel([recorded(objective=(8.0, float("nan"), 2.0))])) == [[0, 2], [8, 2]]


def test_a_logarithmic_axis_is_for_positive_values_over_two_decades():
    wide = {None: ("linear", "log"), "none": ("linear", "linear"), "x": ("symlog", "linear")}
    for last, scales in ((0.05, wide), (0.5, {None: ("linear", "linear"), "xy": ("symlog", "log")})):
        for log, found in scales.items():
            axis = panel([recorded(objective=(8.0, 1.0, last))], log=log)
            assert (axis.get_xscale(), axis.get_yscale()) == found
    assert not any(spans_decades([np.array([8.0, 1.0, last])]) for last in (0.5, -0.01, 0.0))


def test_counts_have_whole_numbers_also_of_a_single_round_and_a_logarithmic_x_keeps_round_0():
    for x in ("round", "exchanges", "seconds"):
        axis = panel([recorded(objective=(8.0, 4.0))], x=x)
        axis.figure.draw_without_rendering()
        assert all(tick == round(tick) for tick in axis.get_xticks()) == (x != "seconds")
    axis = panel([recorded()], log="x")
    assert (curve(axis)[0], axis.get_xlim()[0]) == ([0, 1, 2], 0)
    assert axis.transData.transform((0, 1))[0] < axis.transData.transform((1, 1))[0] - 5
    axis = panel([recorded(columns={"epsilon": (0.5, 1.0, 2.0)})], x="epsilon", log="x")
    assert axis.get_xscale() == "log"  # there is no 0 to show


def test_what_is_not_positive_stands_on_a_floor_line_of_a_logarithmic_axis():
    def arrows(axis):
        return {line.get_color(): line.get_data()[0].tolist() for line in axis.get_lines() if line.get_gid() == FLOOR}

    runs = [recorded(objective=(8.0, 1e-3, 0.0)), recorded(name="fedavg", objective=(8.0, 1e-2, 1e-4))]
    axis = panel(runs, log="y")
    assert arrows(axis) == {palette.method_style("fedgia").colour: [2]}
    (floor,) = (line.get_ydata()[0] for line in axis.get_lines() if line.get_gid() == BASE)
    assert 0 < floor < curve(axis)[1][-1] == 1e-4  # FedAvg
    assert "≤ 0" in [text.get_text() for text in axis.texts]
    assert not arrows(panel(runs, log="none"))


def test_a_page_tells_a_study():
    more = {"objective_gap": (3, 2, 1), "accuracy": (0, 0.5, 1)}
    for columns, error, last in (({}, "‖∇f‖²", ""), (more, "f − f*", "; round accuracy; time (s) accuracy")):
        figure = plot.plot_page([recorded(seed=s, columns=columns) for s in range(2)])
        panels = "; ".join(f"{axis.get_xlabel()} {axis.get_ylabel()}" for axis in axes_of(figure))
        assert panels == f"round objective; exchanges {error}; up + down (kB) {error}; time (s) {error}{last}"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for seed in range(2):
        for k in (5, 10):
            recorded(folder / f"k{k}-{seed}.h5", seed, (8.0, 4.0, 0.5 / k), k0=k, ranks=2)
    return folder


def test_the_command_draws_and_overwrites_a_picture_only_by_force(files, tmp_path):
    many = ["--x", "bytes", "--y", "objective,grad_norm_sq", "--y", "error"]
    for words in (many, ["--box", "k0", "--y", "rounds", "--title", "Rounds"]):
        done = mpifed("plot", *sorted(files.glob("*.h5")), *words, "--force", "-o", "a.svg", cwd=tmp_path)
        assert done == (0, "written to a.svg\n", "")
    words = ["plot", "--timeline", files / "k5-0.h5", "-o", "time.svg"]
    assert mpifed(*words, cwd=tmp_path).out == "written to time.svg\n"
    before = (tmp_path / "time.svg").read_bytes()
    told = "mpifed: time.svg exists; say --force to overwrite it or -o for another name\n"
    assert mpifed(*words, "--width", "5", cwd=tmp_path) == (2, "", told)
    assert (tmp_path / "time.svg").read_bytes() == before
    assert mpifed(*words, "--width", "5", "--force", cwd=tmp_path).code == 0
    assert (tmp_path / "time.svg").read_bytes() != before


BY_CLIENT = {"round": np.array([2]), "accuracy": np.array([[0.5, 0.6, 0.7, 0.8]])}
PICTURES = {
    "curves": plot.plot_lines,
    "page": plot.plot_page,
    "boxes": lambda runs, **wishes: boxplot.plot_boxes(runs, "algorithm", **wishes),
    "clients": lambda runs, **wishes: clients.plot_clients(runs, ["accuracy"], **wishes),
}


@pytest.mark.parametrize("picture", PICTURES)
def test_pictures_leave_out_runs_that_did_not_finish_and_say_so(picture):
    draw = PICTURES[picture]
    runs = [recorded(seed=s, name=name) for name in ("fedgia", "scaffold") for s in range(2)]
    runs += [recorded(seed=2, objective=(8.0, 100.0), status="stopped"), recorded(name="fedavg", status="failed")]
    for run in runs:
        run.by_client, run.unseen = BY_CLIENT, {}
    figure = draw(runs)
    assert "without 2 runs that did not finish" in heading(figure)
    assert "FedAvg" not in names(figure)
    if picture in ("curves", "page"):
        assert "of 2 runs" in heading(figure)
        assert curve(axes_of(figure)[0])[1] == [8, 4, 2]
    figure = draw(runs, everything=True)
    assert "with 2 runs that did not finish" in heading(figure)
    assert "FedAvg" in names(figure)
    assert "did not finish" not in heading(draw(runs[:4]))
    assert "stopped, 1 round" in heading(draw(runs[4:5])), "a run alone is drawn, and its picture says how it ended"
    with pytest.raises(UserError, match="no run has finished: --all, or all=True in Python, shows the others too"):
        draw(runs[4:])


def names(figure):
    return legend(figure) if figure.legends else ticks(axes_of(figure)[0])


def test_a_profile_and_a_timeline_say_which_runs_did_not_finish():
    runs = [recorded(seed=s, name=name) for name in ("fedgia", "scaffold") for s in range(3)]
    runs[-1].attrs["status"] = "stopped"
    costs = profile.collect_costs(runs, [1.0, 2.0, 1.0, 2.0, 1.0, np.inf])
    assert "did not finish and count as never there: 1 run" in heading(profile.plot_profile(costs, "rounds"))
    costs = profile.collect_costs(runs[:2] + runs[3:5], [1.0, 2.0, 2.0, 1.0])
    assert "did not finish" not in heading(profile.plot_profile(costs, "rounds"))
    assert "stopped, 2 rounds" in heading(timeline.plot_timeline(runs[-1]))


def test_the_command_names_the_runs_that_it_leaves_out(files, tmp_path):
    recorded(tmp_path / "died.h5", seed=7, objective=(8.0, 4.0), status="stopped")
    words = ["plot", *sorted(files.glob("*.h5")), "died.h5"]
    told = "left out: died.h5 (stopped, 1 round)\n"
    assert mpifed(*words, "-o", "a.svg", cwd=tmp_path) == (0, f"{told}written to a.svg\n", "")
    assert "without 1 run that did not finish" in (tmp_path / "a.svg").read_text("utf-8")
    assert mpifed(*words, "--all", "-o", "b.svg", cwd=tmp_path) == (0, "written to b.svg\n", "")
    assert mpifed("plot", "died.h5", "-o", "c.svg", cwd=tmp_path) == (0, "written to c.svg\n", "")
    assert "stopped, 1 round" in (tmp_path / "c.svg").read_text("utf-8")


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--y", "objectve"], "unknown column 'objectve'; did you mean 'objective'?"),
        (["--x", "byts"], "unknown column 'byts'; did you mean 'bytes'?"),
        (["--box", "algorithm.k1"], "unknown setting 'algorithm.k1'; did you mean 'algorithm.k0'?"),
        (["--log", "z"], "unknown axis for log 'z'; the choices are x, y, xy, none"),
        (["--band", "iqr"], "unknown band 'iqr'; the choices are none, sd, minmax"),
        (["--rename", "fedgiaours"], "--rename fedgiaours is wrong: it must be OLD=NEW, for example fedgia=ours"),
        (["--rename", "=ours"], "--rename =ours is wrong: it must be OLD=NEW, for example fedgia=ours"),
        (["--rename", "fedgai=ours"], "unknown name for --rename 'fedgai'; did you mean 'fedgia'?"),
        (["--timeline", "--band", "sd"], "--band has no effect on --timeline: leave it out"),
        (["--html", "--band", "sd"], "--band has no effect on --html: leave it out"),
        (["--html", "--page"], "--page and --html are two pictures: draw them one at a time"),
        (["--html", "-o", "a.png"], "a.png does not name a page: with --html it must end in .html"),
        (["--page", "-o", "a.html"], "--page draws no page: a.html must end in .png, .pdf, .svg"),
        (["--width", "wide"], "--width wide is wrong: it must be single, double or a number of inches"),
        (["-o", "a.jpg"], "a.jpg does not name a picture: it must end in .png, .pdf, .svg, or .html for a page"),
        (["-o", "no/a.png"], "no/a.png cannot be written: there is no folder no"),
        (["--timeline"], "--timeline draws one run, not 4"),
        (["--timeline", "--page"], "--timeline and --page are two pictures: draw them one at a time"),
        (["--page", "--x", "round"], "--x has no effect on --page: leave it out"),
        (["--profile", "rounds", "--all"], "--all has no effect on --profile: leave it out"),
        (["--box", "k0", "--y", "objective,rounds"], "--box draws one column, not 2: objective, rounds"),
        (["nowhere.h5"], "nowhere.h5 cannot be read: no such file or directory"),
    ],
)
def test_mistakes_are_sentences(files, words, told):
    done = mpifed("plot", *(path.name for path in sorted(files.glob("*.h5"))), *words, cwd=files)
    assert done == (2, "", f"mpifed: {told}\n")
    assert {path.suffix for path in files.iterdir()} == {".h5"}


def test_without_matplotlib_the_extra_is_named(files, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    told = 'mpifed: pictures need matplotlib: pip install "mpifed[plot]"\n'
    assert mpifed("plot", "k5-0.h5", cwd=files) == (2, "", told)
    assert mpifed("compare", "k5-0.h5", cwd=files).code == 0


@pytest.mark.parametrize(
    ("runs", "options", "told"),
    [
        ([{"columns": {"accuracy": (float("nan"),) * 3}}], {"y": ["accuracy"]}, "numbers of both round and accuracy$"),
        ([{"objective": (-1.0, -2.0)}], {"log": "y"}, "objective that a logarithmic axis can show"),
        ([{"objective": (8.0,)}], {"log": "x"}, "objective that a logarithmic axis can show"),
        ([], {}, "there is no result to read"),
    ],
)
def test_nothing_to_draw_is_told(runs, options, told):
    with pytest.raises(UserError, match=told):
        plot.plot_lines([recorded(**run) for run in runs], **options)


def heights(axis):
    """part by part: the heights of its bars."""
    return [[bar.get_height() for bar in container] for container in axis.containers]


def test_a_timeline_has_rounds_and_ranks():
    figure = timeline.plot_timeline(recorded(ranks=3))
    rounds, ranks = axes_of(figure)
    assert legend(figure) == ["compute", "server", "communication", "waiting", "evaluation", "writing"]
    assert (rounds.get_xlabel(), rounds.get_ylabel()) == ("round", "s per round")
    assert (ranks.get_xlabel(), ranks.get_ylabel()) == ("rank", "s in total")
    assert heights(rounds) == [[0.25] * 2, [0.125] * 2, [0.0625] * 2, [2.0] * 2]  # round 0 is no round of work
    assert heights(ranks) == [[0, 0.5, 1], [0.375, 0, 0], [0.5] * 3, [1, 0.5, 0], [0.25] * 3, [0.125, 0, 0]]


def test_a_picture_of_availability_has_shares_of_clients_over_simulated_time():
    columns = {"available": [2.0, 2.0, 4.0], "selected": [0.0, 2.0, 3.0], "simulated_seconds": [0.0, 5.0, 6.0]}
    figure = timeline.plot_availability(recorded(columns=columns))
    (axis,) = axes_of(figure)
    assert legend(figure) == ["there", "selected", "took part"]
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("simulated time (s)", "share of clients")
    there, selected, _ = axis.get_lines()
    assert there.get_xdata().tolist() == [0, 5, 6]
    assert there.get_ydata().tolist() == [0.5, 0.5, 1]  # the first number of a round that waits for its end
    assert selected.get_ydata().tolist() == [0.5, 0.5, 0.75]
    timeless = timeline.plot_availability(recorded(columns=columns | {"simulated_seconds": [0.0] * 3}))
    assert axes_of(timeless)[0].get_xlabel() == "round"
    with pytest.raises(UserError, match="has no round with system"):
        timeline.plot_availability(recorded())


@pytest.mark.parametrize(("ranks", "rounds"), [(1, 1), (4, 2), (40, 8)])
def test_ranks_and_rounds_are_counted_in_whole_numbers_without_others_between(ranks, rounds):
    figure = timeline.plot_timeline(recorded(ranks=ranks, objective=[1.0] * (rounds + 1)))
    figure.draw_without_rendering()
    for axis, least, most in zip(axes_of(figure), (1, 0), (rounds, ranks - 1), strict=True):
        low, high = axis.get_xlim()
        ticks = [tick for tick in axis.get_xticks() if low <= tick <= high]
        assert ticks
        assert all(tick == round(tick) and least <= tick <= most for tick in ticks)


def test_many_rounds_are_summed_up_and_a_run_without_ranks_has_its_rounds(tmp_path):
    figure = timeline.plot_timeline(recorded(tmp_path / "out.h5", objective=[1.0] * 202, status="running"))
    (axis,) = axes_of(figure)
    assert axis.get_xlabel() == "round (bars: means of 5)"
    assert [len(bars) for bars in heights(axis)] == [41] * 4
    assert set(heights(axis)[0]) == {0.25}
    with pytest.raises(UserError, match="there is nothing to draw: the result has no times of a round"):
        timeline.plot_timeline(recorded(objective=[1.0]))


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
