"""One result and many: by path, pattern, folder or as objects; in a frame, a table, a picture."""

import re
from xml.etree import ElementTree

import numpy as np
import pytest

import mpifed
from mpifed.api.many import load_results
from mpifed.report.summary import show
from tests.api.conftest import TABLE
from tests.helpers.commands import mpifed as command


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


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("results")
    for seed in range(2):
        mpifed.run(TABLE, seed=seed, path=path / f"fedavg-{seed}.h5")
        mpifed.run(TABLE, {"algorithm": {"name": "fedgia", "k0": 3}}, seed=seed, path=path / f"fedgia-{seed}.h5")
    return path


def test_runs_are_named_by_pattern_folder_file_or_themselves(folder):
    everything = load_results(folder)
    assert [result.path for result in everything] == sorted(map(str, folder.glob("*.h5")))
    assert len(load_results(f"{folder}/fedgia*.h5")) == 2
    assert len(load_results([folder / "fedavg-0.h5", everything[3]])) == 2
    assert load_results(everything[0]) == [everything[0]]
    told = {
        "no/*.h5": r"^there is no file no/\*\.h5$",
        "no.h5": r"^no\.h5 cannot be read",
        (): "^there is no result: give",
    }
    for runs, sentence in told.items():
        with pytest.raises(mpifed.UserError, match=sentence):
            load_results(runs)


def test_a_frame_has_a_row_a_run_with_the_settings_that_differ(folder):
    pytest.importorskip("pandas", reason="pandas comes with the extra frames")
    table = mpifed.frame(folder)
    assert list(table.columns[:8]) == ["algorithm", "k0", "seed", "status", "stop_reason", "cr", "tct", "lct"]
    assert table["algorithm"].tolist() == ["fedavg", "fedavg", "fedgia", "fedgia"]
    assert table["k0"].tolist() == [2, 2, 3, 3]
    assert table["cr"].tolist() == [4] * 4
    run = mpifed.load(folder / "fedgia-1.h5")
    row = table[(table["algorithm"] == "fedgia") & (table["seed"] == 1)].iloc[0]
    assert row["objective"] == run.rounds["objective"][-1]
    assert row["bytes_up"] == run.rounds["bytes_up"][-1]
    assert row["compute_seconds"] == pytest.approx(run.rounds["compute_seconds"].sum())
    assert table["exchanges"].dtype.kind == "i"
    assert row["path"] == run.path


def test_a_frame_of_results_in_memory_has_lists_and_tables_as_texts():
    pytest.importorskip("pandas", reason="pandas comes with the extra frames")
    runs = [mpifed.run(TABLE, rounds=1), mpifed.run(TABLE, {"system": {"speed": 1e4}}, rounds=1)]
    table = mpifed.frame(runs)
    assert table["system"].isna().tolist() == [True, False]
    assert table["system"][1] == "yes"
    assert table["path"].isna().all()
    assert mpifed.frame(runs[0]).shape[0] == 1


def test_a_table_and_a_picture_are_those_of_the_command(folder):
    table = mpifed.compare(folder, ["objective", "rounds"], sort="objective", format="csv")
    words = ["--columns", "objective,rounds", "--sort", "objective", "--format", "csv"]
    assert table.splitlines() == command("compare", *sorted(folder.glob("*.h5")), *words).out.splitlines()
    pytest.importorskip("matplotlib", reason="matplotlib comes with the extra plot")
    figure = mpifed.plot(folder, "objective", "bytes", width="double")
    assert figure.get_size_inches()[0] == 7
    with pytest.raises(mpifed.UserError, match=r"^unknown option 'logg'; did you mean 'log'\?$"):
        mpifed.plot(folder, logg="y")
    with pytest.raises(mpifed.UserError, match=r"^width = wide is wrong: it must be single, double or a"):
        mpifed.plot(folder, width="wide")
