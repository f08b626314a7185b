"""How pictures look, and what files they become."""

import xml.etree.ElementTree as ET

import pytest

from mpifed.core.errors import UserError
from mpifed.report import plot, style
from tests.helpers.figures import axes_of, grid
from tests.helpers.recorded_runs import recorded


def test_curves_differ_in_colour_marker_and_line_and_a_title_is_no_formula():
    (axis,) = axes_of(plot.lines([recorded(k0=k) for k in range(1, 10)]))
    looks = [(line.get_color(), line.get_marker(), line.get_linestyle()) for line in axis.get_lines()]
    assert len(set(looks)) == 9
    for k in range(3):
        assert len({look[k] for look in looks[:4]}) == 4
    runs = [recorded(k0=k) for k in range(2)]
    assert plot.lines(runs[:1], title="cost $1$").get_suptitle() == r"cost \$1\$"
    assert plot.lines(runs, title="cost $1$").legends[0].get_title().get_text() == r"cost \$1\$"


def test_a_figure_is_as_wide_as_a_column_or_a_page_and_matplotlib_is_left_as_it_was():
    for options, width in (({}, 3.4), ({"y": ["objective", "grad_norm_sq"]}, 7.0), ({"width": 5.0}, 5.0)):
        assert plot.lines([recorded()], **options).get_size_inches()[0] == width
    for width in (0.0, 0.5, 41.0, float("nan")):
        with pytest.raises(UserError, match=r"width = .* is wrong: it must be from 2 to 40 inches"):
            plot.lines([recorded()], width=width)
    import matplotlib

    before = dict(matplotlib.rcParams)
    plot.lines([recorded()])
    assert dict(matplotlib.rcParams) == before


def test_nothing_is_cut_off():
    runs = [recorded(k0=k, config={"data": {"path": f"/scratch/{'long-' * 9}{k}.h5"}}) for k in range(4)]
    figure = plot.lines(runs, y=["objective", "grad_norm_sq"], title="a title of many words " * 5)
    figure.draw_without_rendering()
    for part in (*axes_of(figure), figure.legends[0]):
        box = part.get_tightbbox()
        assert min(box.x0, box.y0) > -2
        assert box.x1 < figure.bbox.x1 + 2
        assert box.y1 < figure.bbox.y1 + 2
    assert axes_of(figure)[0].get_window_extent().y1 <= figure.legends[0].get_window_extent().y0 + 2


@pytest.mark.parametrize(
    ("name", "begins"),
    [
        pytest.param("a.png", b"\x89PNG", marks=pytest.mark.slow),
        pytest.param("a.pdf", b"%PDF", marks=pytest.mark.slow),
        ("a.SVG", b"<?xml"),
    ],
)
def test_the_ending_says_what_file_it_is(tmp_path, name, begins):
    for path in (tmp_path / name, tmp_path / f"again-{name}"):
        style.save(plot.lines(grid(2.0, 1.0)), path)
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
