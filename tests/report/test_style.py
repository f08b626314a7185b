"""How pictures look, the colour, marker and line of a method among it, and what files they become."""

import xml.etree.ElementTree as ET
from itertools import combinations

import numpy as np
import pytest

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.core.errors import UserError
from mpifed.report import boxplot, palette, plot, style
from tests.helpers.figures import axes_of, grid, heading, legend, panel
from tests.helpers.recorded_runs import recorded


def test_curves_differ_in_colour_marker_and_line_and_a_title_is_no_formula():
    lines = panel([recorded(k0=k) for k in range(1, 10)]).get_lines()
    looks = [(line.get_color(), line.get_marker(), line.get_linestyle()) for line in lines]
    assert len(set(looks)) == 9
    for k in range(3):
        assert len({look[k] for look in looks[:4]}) == 4
    runs = [recorded(k0=k) for k in range(2)]
    assert {heading(plot.plot_lines(some, title="cost $1$")) for some in (runs, runs[:1])} == {r"cost \$1\$"}


def test_a_figure_is_as_wide_as_a_column_or_a_page_and_matplotlib_is_left_as_it_was():
    for options, width in (({}, 3.4), ({"y": ["objective", "grad_norm_sq"]}, 7.0), ({"width": 5.0}, 5.0)):
        assert plot.plot_lines([recorded()], **options).get_size_inches()[0] == width
    for width in (0.0, 0.5, 41.0, float("nan")):
        with pytest.raises(UserError, match=r"width = .* is wrong: it must be from 2 to 40 inches"):
            plot.plot_lines([recorded()], width=width)
    import matplotlib

    before = dict(matplotlib.rcParams)
    plot.plot_lines([recorded()])
    assert dict(matplotlib.rcParams) == before


def test_nothing_is_cut_off():
    runs = [recorded(k0=k, config={"data": {"path": f"/scratch/{'long-' * 9}{k}.h5"}}) for k in range(4)]
    figure = plot.plot_lines(runs, y=["objective", "grad_norm_sq"], title="a title of many words " * 5)
    figure.draw_without_rendering()
    for part in (*axes_of(figure), figure.legends[0]):
        box = part.get_tightbbox()
        assert min(box.x0, box.y0) > -2
        assert box.x1 < figure.bbox.x1 + 2
        assert box.y1 < figure.bbox.y1 + 2
    assert axes_of(figure)[0].get_window_extent().y1 <= figure.legends[0].get_window_extent().y0 + 2


SLOW = [pytest.param(*case, marks=pytest.mark.slow) for case in (("a.png", b"\x89PNG"), ("a.pdf", b"%PDF"))]


@pytest.mark.parametrize(("name", "begins"), [("a.SVG", b"<?xml"), *SLOW])
def test_the_ending_says_what_file_it_is(tmp_path, name, begins):
    for path in (tmp_path / name, tmp_path / f"again-{name}"):
        style.save(plot.plot_lines(grid(2.0, 1.0)), path)
    data = (tmp_path / name).read_bytes()
    assert data.startswith(begins)
    assert len(data) > 5000
    assert data == (tmp_path / f"again-{name}").read_bytes()  # the same runs, the same bytes
    if name == "a.png":
        with pytest.importorskip("PIL.Image").open(tmp_path / name) as picture:
            assert picture.width == 1020, "300 dots an inch"
    if name == "a.SVG":
        texts = ET.parse(tmp_path / name).iter("{http://www.w3.org/2000/svg}text")
        words = {"".join(text.itertext()).strip() for text in texts}
        assert {"round", "objective", "k₀ = 5", "k₀ = 10"} <= words, "letters are text"


def test_every_method_has_a_look_and_methods_differ_in_colour_and_line_and_from_three_more_curves_of_one():
    """Markers are far apart on a curve, so two curves that cross differ by more than a marker."""
    assert palette.METHODS.keys() == Algorithm.choices.keys()
    assert len({(look.colour, look.line) for look in palette.METHODS.values()}) == len(palette.METHODS)
    looks = palette.curve_styles([*palette.METHODS, "fedgia", "fedgia", "fedgia"])
    assert len({(look["color"], str(look["linestyle"]), look["marker"]) for look in looks}) == len(looks)


def test_black_and_white_are_a_hundred_apart_for_everybody_and_red_and_green_are_alike_for_some():
    assert palette.colour_distance("#000000", "#FFFFFF") == pytest.approx(100, abs=0.01)
    assert palette.colour_distance("#5C5000", "#5C5000") == 0
    usual, *without = palette.to_cielab("#C00000") - palette.to_cielab("#5C5000")
    assert (usual**2).sum() ** 0.5 > 40
    assert min((row**2).sum() ** 0.5 for row in without) == palette.colour_distance("#C00000", "#5C5000") < 12
    known = {"#0072B2": [[46.0, -2.7, -41.4], [49.2, 6.9, -37.6], [43.8, 9.5, -44.1], [49.2, -26.6, -12.6]]}
    known |= {"#E69F00": [[70.6, 16.5, 74.7], [66.7, -5.2, 69.8], [73.0, -6.7, 72.9], [70.1, 41.7, 21.2]]}
    assert {colour: palette.to_cielab(colour).round(1).tolist() for colour in known} == known


def nearest(colours):
    """How far apart the two of these colours are that look most alike to some kind of reader."""
    return min(palette.colour_distance(a, b) for a, b in combinations(colours, 2))


def test_colours_can_be_told_apart_without_one_kind_of_cone():
    assert nearest(palette.COLOURS) > 15


def test_six_curves_differ_in_colour_marker_and_line_whatever_their_methods():
    rng = np.random.default_rng(0)
    pool = [*palette.METHODS, *(f"own.py:Mine{k}" for k in range(20))]
    for _ in range(60):
        some = rng.choice(pool, rng.integers(2, 7), replace=False).tolist()
        methods = sorted([*some, *rng.choice(some, 6 - len(some)).tolist()])
        looks = palette.curve_styles(methods)
        for part in ("marker", "linestyle"):
            assert len({str(look[part]) for look in looks}) == 6, methods
        assert nearest([look["color"] for look in looks]) >= 15, methods
    blue = next(name for name in pool[::-1] if palette.method_style(name).colour == palette.BLUE)
    assert ":" in blue, "a class of the user's own that would be blue"
    for both in ([blue, "fedgia"], ["fedgia", blue]):
        found = dict(zip(both, palette.curve_styles(both), strict=True))
        assert found["fedgia"]["color"] == palette.method_style("fedgia").colour != found[blue]["color"]


def test_a_method_has_one_colour_in_every_picture_and_curves_of_it_have_shades_with_lines_and_markers_of_their_own():
    few = [recorded(name="scaffold"), recorded(name="fedavg")]
    many = [*few, *(recorded(name=name) for name in ("fedgia", "flame", "my.module:Mine"))]

    def colours(figure):
        handles = figure.legends[0].get_lines()
        return dict(zip(legend(figure), (line.get_color() for line in handles), strict=True))

    first, second = colours(plot.plot_lines(few)), colours(plot.plot_page(many))
    assert first == {name: second[name] for name in first} == {"FedAvg": "#000000", "SCAFFOLD": "#E69F00"}
    boxes = [*many, *(recorded(name=name, k0=9) for name in ("fedgia", "scaffold"))]
    assert {name: colour for name, colour in colours(boxplot.plot_boxes(boxes, "k0")).items() if name in first} == first
    assert "Mine" in second
    assert palette.method_style("my.module:FedAvg") == palette.method_style("fedavg")  # a variant under the same name
    looks = palette.curve_styles(["fedgia"] * 6)  # shades of a colour
    for part in ("color", "linestyle", "marker"):
        assert len({str(look[part]) for look in looks}) >= 5
    brightness = [float(palette.to_cielab(look["color"])[0, 0]) for look in looks]
    assert brightness == sorted(brightness)
    assert palette.curve_styles(["fedavg", "fedgia", "fedavg"])[1]["color"] == palette.method_style("fedgia").colour
