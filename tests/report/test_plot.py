"""Pictures: what is drawn, what axes and curves are called, and what files come of it."""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.report import boxplot, curves, metrics, plot, style, timeline
from mpifed.report.groups import finished
from mpifed.results.result import load
from tests.helpers.commands import mpifed
from tests.helpers.recorded_runs import recorded

pytest.importorskip("matplotlib")


def axes_of(figure):
    return figure.get_axes()


def curve(axis, number=0):
    return [values.tolist() for values in axis.get_lines()[number].get_data()]


def legend(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def bands(axis):
    """Least and greatest y of every band at every x."""
    outlines = [area.get_paths()[0].vertices for area in axis.collections]
    return [
        {x: (points[points[:, 0] == x, 1].min(), points[points[:, 0] == x, 1].max()) for x in points[:, 0]}
        for points in outlines
    ]


def grid(*ends):
    """Two seeds of two step numbers."""
    return [
        recorded(seed=seed, k0=k, objective=(8.0, 4.0, end + seed))
        for k, end in zip((5, 10), ends, strict=True)
        for seed in range(2)
    ]


# ---------------------------------------------------------------- curves


def test_a_column_is_drawn_against_the_round():
    (axis,) = axes_of(plot.lines([recorded()]))
    assert (axis.get_xlabel(), axis.get_ylabel()) == ("round", "objective")
    assert curve(axis) == [[0, 1, 2], [8, 4, 2]]


@pytest.mark.parametrize(
    ("x", "label", "last"),
    [
        ("exchanges", "exchanges", 2),
        ("bytes", "up + down (kB)", 8),
        ("bytes_up", "up (kB)", 2),
        ("seconds", "time (s)", 2),
        ("simulated_seconds", "simulated time (s)", 6),
        ("inner_steps", "inner steps", 20),
    ],
)
def test_the_x_axis_is_any_column(x, label, last):
    result = recorded(columns={"simulated_seconds": (0, 3, 6), "inner_steps": (0, 10, 20)})
    (axis,) = axes_of(plot.lines([result], x=x))
    assert axis.get_xlabel() == label
    assert curve(axis)[0][-1] == last


def test_every_y_has_a_panel():
    figure = plot.lines([recorded()], y=["objective", "grad_norm_sq", "comm_seconds"])
    assert [axis.get_ylabel() for axis in axes_of(figure)] == ["objective", "‖∇f‖²", "communication (s)"]


def test_rounds_that_were_not_measured_are_passed_over():
    (axis,) = axes_of(plot.lines([recorded(objective=(8.0, float("nan"), 2.0))]))
    assert curve(axis) == [[0, 2], [8, 2]]


def test_a_logarithmic_axis_is_for_positive_values_over_two_decades():
    def scale(*objective, **options):
        (axis,) = axes_of(plot.lines([recorded(objective=objective)], **options))
        return axis.get_xscale() + " " + axis.get_yscale()

    assert scale(8.0, 1.0, 0.05) == "linear log"
    assert scale(8.0, 1.0, 0.5) == scale(8.0, 1.0, -0.01) == scale(8.0, 1.0, 0.0) == "linear linear"
    assert scale(8.0, 1.0, 0.05, log="none") == "linear linear"
    assert scale(8.0, 1.0, 0.5, log="xy") == "log log"
    assert scale(8.0, 1.0, 0.05, log="x") == "log linear"


# ---------------------------------------------------------------- seeds


def test_seeds_are_one_curve_on_a_band_from_least_to_greatest():
    figure = plot.lines(grid(2.0, 1.0))
    (axis,) = axes_of(figure)
    assert legend(figure) == ["k0=5", "k0=10"]
    assert figure.legends[0].get_title().get_text() == "mean and min–max of 2 runs"
    assert curve(axis, 0) == [[0, 1, 2], [8, 4, 2.5]]
    assert [band[2.0] for band in bands(axis)] == [(2, 3), (1, 2)]


def test_the_mean_on_a_logarithmic_axis_is_the_geometric_one():
    figure = plot.lines([recorded(seed=s, objective=(100.0, end)) for s, end in enumerate((0.01, 0.04))])
    (axis,) = axes_of(figure)
    assert curve(axis)[1] == pytest.approx([100, 0.02])
    assert "geometric mean and min–max" in figure.get_suptitle()


def test_ten_runs_have_a_band_without_the_outermost():
    figure = plot.lines([recorded(seed=s, objective=(20.0, 10.0 + s)) for s in range(11)])
    assert bands(axes_of(figure)[0])[0][1.0] == (11, 19)
    assert "10–90 %" in figure.get_suptitle()


def test_a_run_that_finished_keeps_its_last_value_and_another_does_not():
    def means(**options):
        runs = [recorded(seed=0, objective=(8.0, 4.0, 2.0)), recorded(seed=1, objective=(8.0, 6.0), **options)]
        return curve(axes_of(plot.lines(runs))[0])[1]

    assert means() == [8, 5, 4]
    assert means(status="failed") == [8, 5, 2]
    runs = [recorded(seed=s, objective=(8.0,) * n, columns={"inner_steps": (3 * s,) * 3}) for s, n in ((0, 3), (1, 2))]
    assert curve(axes_of(plot.lines(runs, y=["inner_steps"]))[0])[1] == [
        1.5,
        1.5,
        0,
    ]  # a number of each round ends with it


def test_curves_are_averaged_at_equal_x_between_their_points():
    runs = [
        recorded(seed=0, seconds=1.0, objective=(8.0, 4.0, 0.0)),
        recorded(seed=1, seconds=2.0, objective=(8.0, 4.0, 0.0)),
    ]
    (axis,) = axes_of(plot.lines(runs, x="seconds", log="none"))
    assert curve(axis) == [[0, 1, 2, 4], [8, 5, 2, 0]]


def test_an_x_that_goes_back_leaves_every_run_its_curve():
    runs = [recorded(seed=s, columns={"accuracy": (0.1, 0.5, 0.3)}) for s in range(2)]
    (axis,) = axes_of(plot.lines(runs, x="accuracy"))
    assert len(axis.get_lines()) == 2


def test_a_curve_of_many_runs_has_few_points():
    rng = np.random.default_rng(0)
    many = [(np.cumsum(rng.random(500)), np.ones(500)) for _ in range(5)]
    assert len(curves.band(many, [True] * 5, log=True).x) <= curves.POINTS


# ---------------------------------------------------------------- the error


def test_the_error_is_the_gap_where_the_optimum_is_known():
    (axis,) = axes_of(plot.lines([recorded(columns={"objective_gap": (7.0, 3.0, 1.0)})], y=["error"]))
    assert axis.get_ylabel() == "f − f*"
    assert curve(axis)[1] == [7, 3, 1]


def test_else_it_is_above_the_least_objective_found_on_the_same_data():
    runs = [
        recorded(k0=5, objective=(8.0, 2.5)),
        recorded(k0=10, objective=(8.0, 2.0)),
        recorded(k0=10, objective=(9.0, 1.0), seed=1),
    ]  # the seed makes the data
    (axis,) = axes_of(plot.lines(runs, y=["error"], log="none"))
    assert axis.get_ylabel() == "f − least f found"
    assert curve(axis, 0)[1] == [6, 0.5]
    assert curve(axis, 1)[1] == [7, 0]
    (axis,) = axes_of(plot.lines([recorded(objective=(8.0, 1.01, 1.0))], y=["error"]))
    assert axis.get_yscale() == "log"  # the nought of the best run does not forbid it
    assert curve(axis)[0] == [0, 1]


# ---------------------------------------------------------------- how it looks


def test_curves_differ_in_colour_marker_and_line():
    (axis,) = axes_of(plot.lines([recorded(k0=k) for k in range(1, 13)]))
    looks = [(line.get_color(), line.get_marker(), line.get_linestyle()) for line in axis.get_lines()]
    assert len(set(looks)) == 12
    for k in range(3):
        assert len({look[k] for look in looks[:4]}) == 4
    assert len({str(style.look(place)) for place in range(280)}) == 280


def test_labels_have_the_settings_that_differ():
    runs = [recorded(), recorded(name="fedadmm"), recorded(k0=10, config={"data": {"name": "qot"}})]
    assert set(legend(plot.lines(runs))) == {
        "fedgia, k0=5, linreg-noniid",
        "fedadmm, k0=5, linreg-noniid",
        "fedgia, k0=10, qot",
    }


def test_a_single_run_needs_no_legend():
    figure = plot.lines([recorded()])
    assert not figure.legends
    assert not figure.get_suptitle()


@pytest.mark.parametrize("runs", [1, 2])
def test_a_title_is_there_where_it_is_asked_for_and_no_formula(runs):
    figure = plot.lines([recorded(k0=k) for k in range(runs)], title="cost $1$")
    assert (figure.legends[0].get_title().get_text() if runs > 1 else figure.get_suptitle()) == r"cost \$1\$"


def test_a_figure_is_as_wide_as_a_column_or_a_page():
    assert plot.lines([recorded()]).get_size_inches()[0] == 3.4
    assert plot.lines([recorded()], y=["objective", "grad_norm_sq"]).get_size_inches()[0] == 7.0
    assert plot.lines([recorded()], width=5.0).get_size_inches()[0] == 5.0
    for width in (0.0, 0.5, 41.0, float("nan")):
        with pytest.raises(UserError, match=r"width = .* is wrong: it must be from 2 to 40 inches"):
            plot.lines([recorded()], width=width)


def test_nothing_is_cut_off():
    runs = [recorded(k0=k, config={"data": {"path": f"/scratch/{'long-' * 9}{k}.h5"}}) for k in range(4)]
    figure = plot.lines(runs, y=["objective", "grad_norm_sq"], title="a title of many words " * 5)
    figure.draw_without_rendering()
    for part in (*axes_of(figure), figure.legends[0]):
        box = part.get_tightbbox()
        assert box.x0 > -2
        assert box.y0 > -2
        assert box.x1 < figure.bbox.x1 + 2
        assert box.y1 < figure.bbox.y1 + 2
    assert axes_of(figure)[0].get_window_extent().y1 <= figure.legends[0].get_window_extent().y0 + 2


def test_matplotlib_is_left_as_it_was():
    import matplotlib

    before = dict(matplotlib.rcParams)
    plot.lines([recorded()])
    assert dict(matplotlib.rcParams) == before


# ---------------------------------------------------------------- boxes, timeline, page


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


def test_many_rounds_are_summed_up_and_a_run_without_ranks_has_its_rounds(tmp_path):
    figure = timeline.timeline(recorded(tmp_path / "out.h5", objective=[1.0] * 202, status="running"))
    (axis,) = axes_of(figure)
    assert axis.get_xlabel() == "round (bars: means of 5)"
    assert [len(bars) for bars in heights(axis)] == [41] * 4
    assert {bar for bars in heights(axis)[:1] for bar in bars} == {0.25}
    with pytest.raises(UserError, match="there is nothing to draw: the result has no times of a round"):
        timeline.timeline(recorded(objective=[1.0]))


@pytest.mark.parametrize(
    ("columns", "panels"),
    [
        ({}, ["round objective", "exchanges ‖∇f‖²", "up + down (kB) ‖∇f‖²", "time (s) ‖∇f‖²"]),
        (
            {"objective_gap": (3, 2, 1), "accuracy": (0, 0.5, 1)},
            [
                "round objective",
                "exchanges f − f*",
                "up + down (kB) f − f*",
                "time (s) f − f*",
                "round accuracy",
                "time (s) accuracy",
            ],
        ),
    ],
)
def test_a_page_tells_a_study(columns, panels):
    figure = plot.page([recorded(seed=s, columns=columns) for s in range(2)])
    assert [f"{axis.get_xlabel()} {axis.get_ylabel()}" for axis in axes_of(figure)] == panels


# ---------------------------------------------------------------- files and the command


@pytest.fixture
def folder(tmp_path):
    for seed in range(2):
        for k in (5, 10):
            recorded(tmp_path / f"k{k}-{seed}.h5", seed, (8.0, 4.0, 0.5 / k), k0=k, ranks=2)
    return tmp_path


@pytest.mark.parametrize(("name", "begins"), [("a.png", b"\x89PNG"), ("a.pdf", b"%PDF"), ("a.SVG", b"<?xml")])
def test_the_ending_says_what_file_it_is(tmp_path, name, begins):
    for path in (tmp_path / name, tmp_path / f"again-{name}"):
        style.save(plot.lines(grid(2.0, 1.0)), path)
    data = (tmp_path / name).read_bytes()
    assert data.startswith(begins)
    assert len(data) > 5000
    assert data == (tmp_path / f"again-{name}").read_bytes()  # the same runs, the same bytes


def test_a_png_has_200_dots_an_inch(tmp_path):
    image = pytest.importorskip("PIL.Image")
    style.save(plot.lines([recorded()]), tmp_path / "a.png")
    with image.open(tmp_path / "a.png") as picture:
        assert picture.width == 680


def test_the_letters_of_an_svg_are_text(tmp_path):
    style.save(plot.lines(grid(2.0, 1.0)), tmp_path / "a.svg")
    words = {
        "".join(text.itertext()).strip()
        for text in ET.parse(tmp_path / "a.svg").iter("{http://www.w3.org/2000/svg}text")
    }
    assert {"round", "objective", "k0=5", "k0=10"} <= words


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["--x", "bytes", "--y", "objective,grad_norm_sq", "--y", "error"], "curves.svg"),
        (["--page"], "page.pdf"),
        (["--box", "k0", "--y", "rounds", "--title", "Rounds"], "box.png"),
    ],
)
def test_the_command_draws(folder, words, name):
    done = mpifed("plot", *sorted(folder.glob("*.h5")), *words, "-o", name, cwd=folder)
    assert (done.code, done.out, done.err) == (0, f"written to {name}\n", "")
    assert (folder / name).stat().st_size > 5000


def test_a_picture_is_overwritten_only_by_force(folder):
    words = ["plot", "--timeline", "k5-0.h5"]
    assert mpifed(*words, cwd=folder).out == "written to figure.png\n"
    before = (folder / "figure.png").read_bytes()
    done = mpifed(*words, "--width", "5", cwd=folder)
    assert (done.code, done.err) == (
        2,
        "mpifed: figure.png exists; say --force to overwrite it or -o for another name\n",
    )
    assert (folder / "figure.png").read_bytes() == before
    assert mpifed(*words, "--width", "5", "--force", cwd=folder).code == 0
    assert (folder / "figure.png").read_bytes() != before


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--y", "objectve"], "unknown column 'objectve'; did you mean 'objective'?"),
        (["--x", "byts"], "unknown column 'byts'; did you mean 'bytes'?"),
        (["--box", "algorithm.k1"], "unknown setting 'algorithm.k1'; did you mean 'algorithm.k0'?"),
        (["--log", "z"], "unknown axis for log 'z'; the choices are x, y, xy, none"),
        (["--width", "wide"], "--width wide is wrong: it must be single, double or a number of inches"),
        (["-o", "a.jpg"], "a.jpg does not name a picture: it must end in .png, .pdf, .svg"),
        (["-o", "no/a.png"], "no/a.png cannot be written: there is no folder no"),
        (["--timeline"], "--timeline draws one run, not 4"),
        (["--timeline", "--page"], "--timeline and --page are two pictures: draw them one at a time"),
        (["--page", "--x", "round"], "--x has no effect on --page: leave it out"),
        (["--all"], "--all has no effect on curves, which show all runs: it goes with --box"),
        (["--box", "k0", "--y", "objective,rounds"], "--box draws one column, not 2: objective, rounds"),
        (["nowhere.h5"], "nowhere.h5 cannot be read: no such file or directory"),
    ],
)
def test_mistakes_are_sentences(folder, words, told, capsys, monkeypatch):
    from mpifed.cli.main import main

    monkeypatch.chdir(folder)
    assert main(["plot", *(path.name for path in sorted(folder.glob("*.h5"))), *words]) == 2
    assert capsys.readouterr() == ("", f"mpifed: {told}\n")
    assert {path.suffix for path in folder.iterdir()} == {".h5"}


def test_without_matplotlib_the_extra_is_named(folder, capsys, monkeypatch):
    from mpifed.cli.main import main

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.chdir(folder)
    assert main(["plot", "k5-0.h5"]) == 2
    assert capsys.readouterr().err == 'mpifed: pictures need matplotlib: pip install "mpifed[plot]"\n'
    assert main(["compare", "k5-0.h5"]) == 0


def test_nothing_to_draw_is_told():
    with pytest.raises(UserError, match="there is nothing to draw: no run has numbers of both round and accuracy"):
        plot.lines([recorded(columns={"accuracy": (float("nan"),) * 3})], y=["accuracy"])
    with pytest.raises(UserError, match="objective that a logarithmic axis can show"):
        plot.lines([recorded(objective=(-1.0, -2.0))], log="y")
    with pytest.raises(UserError, match="there is no result to read"):
        plot.lines([])


# ---------------------------------------------------------------- a real run, and xarray


def test_a_real_run_can_be_drawn_in_every_way(tmp_path):
    out = tmp_path / "out.h5"
    assert mpifed("run", "data.clients=6", "data.features=5", "rounds=4", "-q", "-o", out).code == 0
    result = load(out)
    for figure in (
        plot.lines([result], "seconds", metrics.requested([result], None)[:1]),
        plot.page([result]),
        boxplot.box([result], "k0", "tct"),
        timeline.timeline(result),
    ):
        assert axes_of(figure)


def test_xarray_draws_a_result_in_two_lines(tmp_path):
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("h5netcdf")
    import matplotlib

    matplotlib.use("Agg")
    recorded(tmp_path / "out.h5")
    with xarray.open_dataset(tmp_path / "out.h5", group="rounds", engine="h5netcdf") as data:
        (line,) = data["objective"].plot()
        assert line.get_xdata().tolist() == [0, 1, 2]
        assert line.get_ydata().tolist() == [8, 4, 2]
        assert "round" in line.axes.get_xlabel().lower()
        matplotlib.pyplot.close(line.figure)
