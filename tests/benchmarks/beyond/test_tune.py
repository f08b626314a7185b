"""The tuning of the comparison of all methods: the same number of settings for each, and the best by gap."""

from __future__ import annotations

import sys

import pytest

from benchmarks.beyond import tune
from mpifed import load
from mpifed.core import signals


@pytest.mark.parametrize("setting", tune.SETTINGS)
def test_every_row_has_twelve_settings_and_feddcd_six(setting):
    counts = {row: len(tables) for row, tables in tune.grids(tune.SETTINGS[setting]).items()}
    assert {row: count for row, count in counts.items() if count != 12} == {"FedDCD": 6, "FedDCD, 5 steps": 6}
    assert len(counts) == 15 + (setting == "adult")


def test_a_setting_is_told_by_the_options_that_differ():
    tables = tune.grids(tune.SETTINGS["digits"])["FedProx"]
    found = tune.method("FedProx", tables)
    assert [one.algorithm for one in found.tries] == tables
    assert {tuple(one.options) for one in found.tries} == {("step.a", "mu")}


def test_tries_are_kept_and_the_best_has_the_smallest_gap(tmp_path, monkeypatch, capsys):
    pytest.importorskip("sklearn")
    monkeypatch.setattr(signals, "stop_signal", "")
    monkeypatch.setitem(tune.SETTINGS, "digits", tune.SETTINGS["digits"]._replace(rounds=2))
    words = ["tune", "digits", "FedDCD, 5 steps", "--to", str(tmp_path), "--processes", "1"]
    monkeypatch.setattr(sys, "argv", words)
    tune.main()
    first = capsys.readouterr()
    assert len(first.out.splitlines()) == 7
    files = sorted((tmp_path / "digits").glob("*.h5"))
    assert len(files) == 6
    gaps = {load(path).config["algorithm"]["eta"]: load(path).rounds["objective_gap"].mean() for path in files}
    best = min(gaps, key=gaps.get)
    assert first.out.splitlines()[-1].startswith(f"FedDCD, 5 steps: inf rounds, gap {gaps[best]:.1e}: ")
    assert f"eta = {best}" in first.out.splitlines()[-1]
    tune.main()
    again = capsys.readouterr()
    assert again.out == first.out
    assert "6 of 6 points are finished already" in again.err
