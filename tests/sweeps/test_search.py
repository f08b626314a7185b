"""What tuning tries: grids and ranges, the same number for every method."""

import math

import pytest

from mpifed.core.errors import UserError
from mpifed.experiment.config import experiment
from mpifed.sweeps import search
from mpifed.sweeps.search import Range, draw_settings, hypercube, parse_method, read_methods


def test_a_range_has_both_ends_and_is_even_in_the_logarithm_but_from_zero():
    values = [one["t"] for one in draw_settings({"t": Range(0.001, 1.0)}, 7, 0)]
    assert values == [0.001, 0.00316, 0.01, 0.0316, 0.1, 0.316, 1.0]
    assert [one["mu"] for one in draw_settings({"mu": Range(0.0, 1.0)}, 5, 0)] == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert [one["k0"] for one in draw_settings({"k0": Range(1, 20, True)}, 12, 0)] == [1, 2, 3, 4, 5, 7, 9, 12, 15, 20]


def test_lists_and_one_range_make_a_grid_within_the_budget():
    found = draw_settings({"t": Range(0.01, 1.0), "k0": [1, 5]}, 7, 0)
    assert [(one["t"], one["k0"]) for one in found] == [(t, k0) for t in (0.01, 0.1, 1.0) for k0 in (1, 5)]
    assert len(draw_settings({"k0": [1, 2, 3], "H": ["gram", "zero"]}, 12, 0)) == 6


@pytest.mark.parametrize(
    "axes", [{"t": Range(0.001, 1.0), "r": Range(1.0, 2.0)}, {"a": list(range(9)), "b": [1, 2, 3]}]
)
def test_more_is_drawn_from_a_latin_hypercube(axes):
    found = draw_settings(axes, 12, 0)
    assert 0 < len(found) <= 12
    assert found == draw_settings(axes, 12, 0)
    for coordinate in zip(*hypercube(3, 8, 0), strict=True):  # one point in each part of every coordinate
        assert sorted(int(8 * share) for share in coordinate) == list(range(8))
    if "t" in axes:
        assert len({math.floor(12 * math.log10(one["t"] / 0.001) / 3) for one in found}) == 12


def test_a_method_is_a_name_with_values_and_ranges():
    found = parse_method("fedavg step.name=constant step.a=0.01..1 k0=1,5 batch_size=0", 6, 0)
    assert found.label == "fedavg"
    assert found.tries[0].options == {"step.a": 0.01, "k0": 1}
    step = {"name": "constant", "a": 0.01}
    assert found.tries[0].algorithm == {"name": "fedavg", "step": step, "k0": 1, "batch_size": 0}
    assert [one.options["step.a"] for one in found.tries] == [0.01, 0.01, 0.1, 0.1, 1.0, 1.0]


LABELLED = "fedavg k0=1 step.a=0.01,0.1"


def test_a_method_alone_is_tuned_by_its_step_size_around_its_default():
    options = {"fedavg": ("step.a", 1e-4, 1.0), "fedgia": ("t", 1e-3, 10.0)}
    for name, (key, *ends) in (options | {"fedadmm": ("r0", 0.002, 20.0), "flame": ("lr", 1e-4, 1.0)}).items():
        tries = parse_method(name, 5, 0).tries
        assert [list(one.options) for one in tries] == [[key]] * 5
        assert [tries[0].options[key], tries[-1].options[key]] == pytest.approx(ends)


def test_a_label_among_the_words_is_the_name_of_a_method():
    found = parse_method("fedavg k0=1 label='FedAvg, one step' step.a=0.01,0.1", 4, 0)
    assert found.label == "FedAvg, one step"
    assert [one.algorithm for one in found.tries] == [one.algorithm for one in parse_method(LABELLED, 4, 0).tries]
    for wrong in ("fedavg label=", "fedavg label=a label=b"):
        with pytest.raises(UserError, match=r"is wrong: it must have one label=NAME at most, such as label=ours$"):
            parse_method(wrong, 4, 0)


def test_a_file_of_methods(tmp_path):
    path = tmp_path / "methods.toml"
    path.write_text(
        '[[method]]\nname = "fedgia"\nt = "0.01..1"\nk0 = [1, 5]\nH = "diagonal"\n'
        '[[method]]\nlabel = "FedAvg, falling"\nname = "fedavg"\nstep = {name = "log2", a = "0.1..1"}\n'
    )
    gia, average = read_methods(str(path), 4)
    assert (gia.label, average.label) == ("fedgia", "FedAvg, falling")
    assert [one.options for one in gia.tries] == [{"t": t, "k0": k0} for t in (0.01, 1.0) for k0 in (1, 5)]
    assert gia.tries[0].algorithm == {"name": "fedgia", "H": "diagonal", "t": 0.01, "k0": 1}
    assert [one.algorithm["step"]["a"] for one in average.tries] == [0.1, 0.215, 0.464, 1.0]
    assert "label" not in average.tries[0].algorithm


def test_a_mistake_in_a_method_or_a_file_of_methods_is_said(tmp_path):
    wrong = dict.fromkeys(("", "t=1..2"), "write a name and options")
    wrong |= {"fedgia t": "write KEY=VALUE", "fedgia 't=1": "No closing quotation"}
    wrong["fedgia t=2..1"] = r"t = 2\.\.1 is wrong: a range goes from a smaller number to a larger one"
    wrong["fedgi"] = r"unknown algorithm 'fedgi'; did you mean 'fedgia'\?"
    for text, sentence in wrong.items():
        with pytest.raises(UserError, match=sentence):
            parse_method(text, 4, 0)
    path = tmp_path / "methods.toml"
    wrong = {"rounds = 3\n": "it must have tables", "[[method]]\nt = 1.0\n": "method 1 has no name"}
    for text, sentence in (wrong | {"[[": "is not valid TOML"}).items():
        path.write_text(text)
        with pytest.raises(UserError, match=rf"methods\.toml.* {sentence}"):
            search.read_tables(str(path))


@pytest.mark.parametrize(
    ("text", "key", "first"),
    [
        ("fedavg step=constant step.a=0.03..3", "step", {"name": "constant", "a": 0.03}),
        ("fedavg step.a=0.03..3 step=constant", "step", {"name": "constant", "a": 0.03}),
        ("fedavg step=constant", "step", {"name": "constant", "a": 0.0001}),
        ("fedavg step=constant,log2 step.a=0.1,1", "step", {"name": "constant", "a": 0.1}),
        ("fedopt server=adam server.lr=0.01..1", "server", {"name": "adam", "lr": 0.01}),
        ("ef21 compressor=topk compressor.k=1..3", "compressor", {"name": "topk", "k": 1}),
        ("ad-admm solver=gd solver.steps=1,2,3", "solver", {"name": "gd", "steps": 1}),
    ],
)
def test_a_name_stands_for_its_table_as_in_run_and_sweep_in_a_text_and_in_a_file(text, key, first, tmp_path):
    name, *words = text.split()
    file = tmp_path / "methods.toml"
    values = {word.partition("=")[0]: word.partition("=")[2] for word in words}
    lines = [f"'{own}' = {value.split(',') if ',' in value else repr(value)}" for own, value in values.items()]
    file.write_text("\n".join(["[[method]]", f"name = '{name}'", *lines]))
    text_method, [file_method] = parse_method(text, 4, 0), read_methods(str(file), 4)
    assert text_method.tries[0].algorithm[key] == first
    assert len({str(one.algorithm) for one in text_method.tries}) == len(
        text_method.tries
    )  # each has a table of its own
    assert file_method.tries[0].algorithm[key]["name"] == first["name"]
    for one in text_method.tries:
        experiment({"algorithm": one.algorithm})
