"""The prediction of sums over ranks: the ways that mpifed has, and what it takes."""

from __future__ import annotations

import csv

import pytest

from benchmarks.speed import predicted_sums
from benchmarks.speed.predicted_sums import BARE, Prediction
from tests.helpers.commands import ROOT

PAGE = ROOT / "docs" / "performance.md"


@pytest.fixture
def few(monkeypatch):
    monkeypatch.setattr(predicted_sums, "RANKS", (16, 64, 256))
    monkeypatch.setattr(predicted_sums, "FEATURES", (100, 10_000_000))
    return {(one.ranks, one.n): one for one in predicted_sums.predictions(1000)}


def test_the_way_that_is_taken_is_the_fastest_of_mpifed(few):
    assert len(few) == 6
    for one in few.values():
        assert isinstance(one, Prediction)
        assert one.seconds[one.chosen] == min(seconds for way, seconds in one.seconds.items() if way != BARE)


def test_a_star_costs_as_much_more_as_there_are_ranks_and_a_tree_a_few_messages_more(few):
    star, tree = ([few[ranks, 100].seconds[way] for ranks in (16, 256)] for way in ("star", "tree"))
    assert star[1] > 10 * star[0]
    assert tree[1] < 4 * tree[0]
    assert few[256, 100].chosen == "tree"
    assert few[64, 10_000_000].chosen == "slices"


def test_table_file_and_picture_have_all_sizes(few, tmp_path, capsys):
    found = list(few.values())
    predicted_sums.show(found)
    table = capsys.readouterr().out.splitlines()
    assert [line.split()[:2] for line in table[1:]] == [
        [n, r] for n in ("100", "10,000,000") for r in ("16", "64", "256")
    ]
    assert all(line.count("*") == 1 for line in table[1:])
    predicted_sums.write(found, tmp_path / "sums.csv")
    with (tmp_path / "sums.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(int(row["ranks"]), int(row["n"]), row["chosen"]) for row in rows] == [
        (one.ranks, one.n, one.chosen) for one in found
    ]
    pytest.importorskip("matplotlib")
    assert predicted_sums.draw(found, tmp_path / "sums.png")
    assert (tmp_path / "sums.png").stat().st_size > 10_000
