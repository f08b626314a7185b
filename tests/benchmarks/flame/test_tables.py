"""The tables of FLAME: printed numbers stand beside runs on the paper's data, with its H and its methods."""

from __future__ import annotations

import pytest

from benchmarks import bench
from benchmarks.grid import runs

FLAME = [name for name in bench.names() if name.startswith("flame/")]
PRINTED = [(name, block) for name in FLAME for block in bench.read(name).block if block.paper]


@pytest.mark.parametrize(("name", "block"), PRINTED, ids=lambda part: getattr(part, "name", part))
def test_printed_numbers_stand_beside_the_papers_data_or_are_marked(name, block):
    every = [run for run in runs(bench.read(name), 1, name) if run.cell.block == block.name]
    tables = [run.config.toml() for run in every]
    halves = [table for table in tables if 'part = "test"' in table or 'part = "train"' in table]
    assert not halves or block.surrogate
    assert all(run.config.algorithm.epochs == 5 for run in every)  # H as printed


def test_what_a_replay_of_the_program_reached_stands_beside_the_same_images():
    (block,) = [one for one in bench.read("flame/table3").block if one.reference]
    assert not block.paper
    assert block.study["data"] == {"name": "mnist", "part": "test"}
