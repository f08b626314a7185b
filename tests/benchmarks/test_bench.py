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
            assert figure.kind == "curves" or bench.columns is not None
    more = expressions.paper_measures(name.split("/")[0])
    for measure in (*bench.measures, *(claim.measure for claim in bench.claim)):
        assert measure in more.measures or expressions.parsed(measure)
    assert {run.name for run in runs(bench.reduced(), bench.quick.seeds, name)}


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
