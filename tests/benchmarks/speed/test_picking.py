"""The benchmark of picking clients: a line for each number of clients, and the goal."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from benchmarks.speed import picking


def test_a_median_leaves_the_first_round_out():
    rounds = []
    assert picking.median(rounds.append, 3) < 1
    assert rounds == [1, 2, 3, 4]


def test_every_selected_client_is_picked_and_no_other(monkeypatch):
    seen = []

    def idle(self, f, client):
        seen.append(f.ids)
        return client, f.d.astype(float)

    monkeypatch.setattr(picking.Idle, "idle", idle)
    picking.measure(300, 20, 1, 2, 2)
    for ids in np.split(np.concatenate(seen), 2):
        assert len(set(ids)) == 20


@pytest.mark.parametrize("goal", [1e9, 0.0])
def test_a_table_is_printed(goal, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["picking", "--clients", "200,400", "--selected", "10", "--rounds", "2"])
    monkeypatch.setattr(picking, "GOAL", goal)
    picking.main()
    head, *lines, last = capsys.readouterr().out.splitlines()
    assert head.split() == ["clients", "uniform", "cover", "deal", "biased", "pick", "sum", "load", "s"]
    assert [line.split()[0] for line in lines] == ["200", "400"]
    for line in lines:
        values = [float(word) for word in line.split()[1:]]
        assert values[5] == pytest.approx(values[0] + values[4], abs=0.002)
    assert last.endswith("yes" if goal else "no")
