"""A result in a Python program: one line, a table and curves for a notebook, a summary, pictures."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

import mpifed
from mpifed.report.summary import show
from tests.api.conftest import TABLE


@pytest.fixture(scope="module")
def result():
    return mpifed.run(TABLE, {"algorithm": {"name": "fedgia", "k0": 10}, "data.features": 60}, rounds=30)


def test_run_load_and_resume_give_results_of_one_class(result, tmp_path):
    result.save(tmp_path / "out.h5")
    loaded = mpifed.load(tmp_path / "out.h5")
    assert type(result) is type(loaded) is mpifed.Result
    assert np.array_equal(result.x, loaded.x)
    assert loaded.path == str(tmp_path / "out.h5")


def test_its_repr_is_a_line_and_its_summary_that_of_the_command(result):
    line = r"<Result of fedgia on least-squares / linreg-noniid, 6 clients: finished after 30 rounds, f [\d.]+>"
    assert re.fullmatch(line, repr(result))
    empty = mpifed.Result.of(result)
    empty.rounds = {}
    assert repr(empty).endswith("finished after 0 rounds>")
    assert result.summary() == show(result)


def test_a_notebook_shows_a_table_and_two_curves_with_what_a_file_holds_escaped(result):
    text = result._repr_html_()
    page = ElementTree.fromstring(text)
    curves = [element.get("points").split() for element in page.iter("polyline")]
    assert [len(points) for points in curves] == [31, 31]
    labels = [element.get("aria-label") for element in page.iter("svg")]
    assert labels == ["objective, logarithmic by round", "‖∇f‖², logarithmic by round"]
    cells = [element.text for element in page.iter("td")]
    assert cells[cells.index("why it ended") + 1] == "rounds: 30"
    assert cells[cells.index("algorithm.k0") + 1] == "10"
    assert "<script" not in text
    other = mpifed.Result.of(result)
    other.attrs = result.attrs | {"stop_reason": "<b>&</b>"}
    assert "&lt;b&gt;&amp;&lt;/b&gt;" in other._repr_html_()
    ElementTree.fromstring(other._repr_html_())
    page = ElementTree.fromstring(mpifed.run(TABLE, rounds=0)._repr_html_())
    assert not list(page.iter("svg"))


def test_a_long_run_has_a_curve_of_few_points_and_accuracy_is_drawn(result):
    other = mpifed.Result.of(result)
    rounds = np.arange(5001)
    other.rounds = {"round": rounds, "objective": 1.0 / (1 + rounds), "accuracy": np.where(rounds % 2, np.nan, 0.5)}
    page = ElementTree.fromstring(other._repr_html_())
    assert [len(element.get("points").split()) for element in page.iter("polyline")] == [200, 200]
    assert [element.get("aria-label") for element in page.iter("svg")][1] == "accuracy by round"


def test_it_is_plotted_and_a_notebook_shows_the_figure(result, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib comes with the extra plot")
    figure = result.plot(["objective", "grad_norm_sq"], log="y", title="A run", path=tmp_path / "a.svg")
    assert len(figure.axes) == 2
    assert figure.axes[0].get_yscale() == "log"
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert (tmp_path / "a.svg").read_bytes().startswith(b"<?xml")
