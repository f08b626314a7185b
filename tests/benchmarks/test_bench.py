"""Every benchmark file is valid, a wrong one is refused with a clear message, and a measure is the number it names."""

import math

import numpy as np
import pytest

import mpifed
from benchmarks import bench as benches
from benchmarks import expressions
from benchmarks.expressions import PaperMeasures, value
from benchmarks.grid import runs
from benchmarks.running import Optima
from mpifed import UserError
from mpifed.experiment import config


@pytest.mark.parametrize("name", benches.names())
def test_every_benchmark_is_sound(name):
    bench = benches.read(name)
    for grid, seeds in ((bench, 1), (bench.reduced(), bench.quick.seeds)):
        found = list(runs(grid, seeds, name))
        assert found
        assert len({run.name for run in found}) == len(found)
        for figure in grid.figure:
            assert figure.kind in ("curves", "dots") or bench.columns is not None
    more = expressions.paper_measures(name.split("/")[0])
    for measure in (*bench.measures, *(claim.measure for claim in bench.claim)):
        assert measure in more.measures or expressions.parsed(measure)
    for claim in bench.claim:  # it can be read without the claims around it
        assert not claim.text.lower().startswith(("the same", "so does", "and ", "but ", "likewise")), claim.text


def test_printed_numbers_of_flame_stand_beside_the_papers_data_and_steps_or_are_marked():
    for name in (name for name in benches.names() if name.startswith("flame/")):
        bench = benches.read(name)
        for block in bench.block:
            every = [run.config for run in runs(bench, 1, name) if run.cell.block == block.name]
            if block.paper:
                assert block.surrogate or not any('part = "t' in run.toml() for run in every)  # half of the images
                assert all(run.algorithm.epochs == 5 for run in every)  # H as printed
            if block.reference:  # what a replay of the program reached, on the same images
                assert not block.paper
                assert block.study["data"] == {"name": "mnist", "part": "test"}


def test_numbers_of_a_paper_keep_their_digits_and_a_block_may_have_seeds_and_trials_of_its_own(tiny):
    numbers = benches.read("fedgia/tiny").block[0].paper["FedGiA"]["rounds"]
    assert numbers == [5.0, 4.0]
    assert [number.text for number in numbers] == ["5.0", "4.0"]
    tiny.write_text(tiny.read_text().replace("optimum = true", "optimum = true\nseeds = 7\nreport = 5\nassumed = 3"))
    bench = benches.read("fedgia/tiny")

    def seeds(command):
        found = [run.cell.block for run in runs(bench.repeated(command), 2) if run.cell.value == 1]
        return [found.count(block.name) / len(block.rows) for block in bench.block]

    assert (seeds("seeds"), seeds("report"), seeds("")) == ([7, 2], [5, 2], [2, 2])
    assert [bench.trials_of(block) for block in bench.block] == [(3, False), (20, True)]


def test_a_wrong_file_is_refused(tiny):
    text = tiny.read_text()
    for old, new, sentence in (
        ("seeds = 20", "", "missing required field `seeds`"),
        ("rounds = [5.0, 4.0]", "rounds = [5.0]", "no such row or measure"),
        ('name = "FedAvg", ', "", "a row without a name, or two with the same"),
        ('name = "Example V.2"', 'name = "Example V.1"', "two blocks have the same name"),
        ('order = ["FedGiA", "FedAvg"]', "", "needs exactly one of order, falls"),
        ("k0", "k1", "k1"),
        ("algorithm.k0", "rounds.k0", "Example V.1, FedGiA: rounds.k0 = 1 is wrong: rounds is not a table"),
    ):
        tiny.write_text(text.replace(old, new, 1))
        with pytest.raises(UserError, match=sentence):
            list(runs(benches.read("fedgia/tiny"), 1, "fedgia/tiny"))


def test_measures_of_a_run():
    study = {"rounds": 8, "data": {"clients": 6, "features": 5}, "stop": {"gradient": 1e-30, "optimum": 1.0}}
    result = mpifed.run(study)
    f, none = result.rounds["objective"], PaperMeasures({}, {"half": lambda result: result.rounds["objective"] / 2})
    first = np.argmax(f <= f[3])
    assert np.array_equal(result.rounds["objective_gap"], f - 1.0)
    known = {"objective": f[-1], "max objective": f.max(), "half": f[-1] / 2, "rounds at objective <= -1": math.inf}
    reached = {"rounds": first, "exchanges": result.rounds["exchanges"][first]}
    known |= {f"{name} at objective <= {f[3]}": number for name, number in reached.items()}
    assert {text: value(result, text, none) for text in known} == known
    assert math.isnan(value(result, "rounds at accuracy >= 0.5", none))
    assert expressions.censored(result, "rounds")
    assert np.array_equal(expressions.series(result, "iterations", none), 10 * np.arange(9))
    for wrong in ("rounds at objective", "max f g", "rounds at accuracy >= x", "rounds at accuracy > 0.5"):
        with pytest.raises(UserError, match="is not a measure"):
            expressions.parsed(wrong)


def test_the_optimum_is_that_of_normal_equations_and_is_computed_again_if_the_cache_is_damaged(tmp_path):
    data = {"clients": 7, "features": 4, "least": 5, "most": 9}
    study = config.experiment({"data": data, "seed": 3, "stop": {"objective_gap": 1e-3, "optimum": 0.0}})
    data = study.data.load(3, "float64")
    a, b = data.rows(0, data.m)
    weights = np.repeat(1 / (data.m * data.sizes), data.sizes)
    x = np.linalg.solve(a.T @ (weights[:, None] * a), a.T @ (weights * b))
    found = Optima(tmp_path).given(study).stop.optimum
    assert found == pytest.approx(0.5 * float(weights @ (a @ x - b) ** 2), abs=1e-14)
    assert list(Optima(tmp_path).known.values()) == [found]
    (tmp_path / "optima.json").write_text('{"a": ')
    assert Optima(tmp_path).given(study).stop.optimum == found
    assert list(tmp_path.iterdir()) == [tmp_path / "optima.json"]
