"""Every benchmark file is valid, and a wrong one is refused with a clear message."""

from __future__ import annotations

import pytest

from benchmarks import bench as benches
from benchmarks import expressions
from benchmarks.grid import runs
from mpifed import UserError
from tests.benchmarks.tiny import TINY

PAPERS = ("fedadmm", "fedgia", "fedepm", "flame", "feddcd", "beyond")


@pytest.mark.parametrize("name", benches.names())
def test_every_benchmark_is_sound(name):
    bench = benches.read(name)
    for grid in (bench, bench.reduced()):
        found = list(runs(grid, 1, name))
        assert found
        assert len({run.name for run in found}) == len(found)
        for figure in grid.figure:
            assert figure.kind in ("curves", "dots") or bench.columns is not None
    more = expressions.paper_measures(name.split("/")[0])
    for measure in (*bench.measures, *(claim.measure for claim in bench.claim)):
        assert measure in more.measures or expressions.parsed(measure)
    assert {run.name for run in runs(bench.reduced(), bench.quick.seeds, name)}


def test_numbers_of_a_paper_keep_their_digits(tiny):
    block = benches.read("fedgia/tiny").block[0]
    assert block.paper["FedGiA"]["rounds"] == [5.0, 4.0]
    assert [number.text for number in block.paper["FedGiA"]["rounds"]] == ["5.0", "4.0"]


def test_a_block_may_have_seeds_and_trials_of_its_own(tiny):
    file = tiny / "benchmarks" / "fedgia" / "tiny.toml"
    file.write_text(TINY.replace("optimum = true", "optimum = true\nseeds = 7\nreport = 5\nassumed = 3"))
    bench = benches.read("fedgia/tiny")
    first, second = bench.block

    def seeds(command):
        found = [run.cell.block for run in runs(bench.repeated(command), 2) if run.cell.value == 1]
        return [found.count(block.name) / len(block.rows) for block in bench.block]

    assert (seeds("seeds"), seeds("report"), seeds("")) == ([7, 2], [5, 2], [2, 2])
    assert (bench.trials_of(first), bench.trials_of(second)) == ((3, False), (20, True))


def test_every_paper_has_benchmarks():
    assert {name.split("/")[0] for name in benches.names()} == set(PAPERS)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ("seeds = 20", "missing required field `seeds`"),
        ("rounds = [5.0, 4.0]", "no such row or measure"),
        ('order = ["FedGiA", "FedAvg"]', "needs exactly one of order, falls"),
        ("k0", "no option 'k1'"),
    ],
)
def test_a_wrong_file_is_refused(wrong, sentence, tiny):
    other = {"seeds = 20": "", "rounds = [5.0, 4.0]": "rounds = [5.0]", "k0": "k1"}.get(wrong, "")
    file = tiny / "benchmarks" / "fedgia" / "tiny.toml"
    file.write_text(TINY.replace(wrong, other, 1))
    with pytest.raises(UserError, match=sentence if wrong != "k0" else "k1"):
        list(runs(benches.read("fedgia/tiny"), 1, "fedgia/tiny"))
