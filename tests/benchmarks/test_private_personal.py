"""The study of private means and personal parts: its page follows from its rows, and test samples choose nothing."""

import math

import numpy as np
import pytest

from benchmarks import private_personal as study
from benchmarks.private_personal import PARTS, SEEDS, TUNING, Cell, Row, Rows, text
from benchmarks.private_tables import written

TRIES = [{"step": 1.0}, {"step": 2.0}]


def row(setting, seed, validation, test=0.0):
    return Row("digits", ("mode", "1"), text(setting), seed, validation, test, 0.0, 0.0)


@pytest.fixture
def small(monkeypatch, tmp_path):
    """A part of one cell whose runs take no time; returns what was run, and the file of rows."""
    ran = []

    def measured(part, cell, setting, seed):
        ran.append((setting["step"], seed))
        return row(setting, seed, validation=setting["step"] / 10, test=0.5)

    monkeypatch.setattr(study, "measured", measured)
    monkeypatch.setattr(study, "RAW", tmp_path)
    monkeypatch.setitem(PARTS, "digits", [Cell("mode", "1", TRIES, lambda setting, seed: {})])
    return ran, tmp_path / "digits.jsonl"


def test_the_page_has_the_tables_that_the_committed_rows_give():
    page = study.PAGE.read_text("utf-8")
    assert written(page, study.committed()) == page
    assert page.count("<!-- table ") == page.count("<!-- end ") == 8


def test_validation_samples_of_the_seeds_for_tuning_choose():
    best = [row(TRIES[0], seed, 0.5, test=0.1) for seed in TUNING["digits"]]
    other = [row(TRIES[1], seed, 0.4, test=0.9) for seed in TUNING["digits"]]
    reported = [row(TRIES[1], seed, 1.0, test=1.0) for seed in SEEDS]
    cell = Cell("mode", "1", TRIES, lambda setting, seed: {})
    assert Rows(best + other + reported).chosen("digits", cell) == TRIES[0]
    assert not set(SEEDS) & {seed for seeds in TUNING.values() for seed in seeds}


def test_all_cells_of_a_part_have_as_many_tries():
    counts = {part: {len({text(one) for one in cell.tries}) for cell in cells} for part, cells in PARTS.items()}
    assert counts == {"digits": {12}, "schools": {6}, "personal": {6}}


def test_a_killed_run_continues_where_its_last_whole_line_ends(small):
    ran, file = small
    study.run("digits")
    tuning = [(step, seed) for step in (1.0, 2.0) for seed in TUNING["digits"]]
    assert ran == [*tuning, *((2.0, seed) for seed in SEEDS)]
    whole = file.read_bytes()
    file.write_bytes(whole[:-5])
    ran.clear()
    study.run("digits")
    assert ran == [(2.0, SEEDS[-1])]
    assert file.read_bytes() == whole


def test_every_private_run_has_spent_its_epsilon_and_no_more():
    private = [one for one in study.committed().rows.values() if one.part != "personal"]
    for one in private:
        epsilon = float(one.cell[1])
        assert one.epsilon == 0 if math.isinf(epsilon) else 0.95 * epsilon < one.epsilon <= epsilon * 1.001, one
    assert {one.cell[1] for one in private} == {"1", "2", "4", "8", "inf"}


def test_an_interval_is_that_of_student():
    stats = pytest.importorskip("scipy.stats")
    values = np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    low, high = stats.t.interval(0.95, 4, 3.0, stats.sem(values))
    assert study.half_width(values) == pytest.approx((high - low) / 2)
    assert study.interval(values, "+") == "+3.0 ± 2.0"


@pytest.mark.parametrize("mode", ["sampled, adaptive bound", "all, distributed noise"])
def test_a_committed_row_is_that_of_its_run(mode):
    pytest.importorskip("sklearn")
    pytest.importorskip("dp_accounting")
    cell = study.find("digits", mode, "8")
    rows = study.committed()
    setting = cell.tries[0]
    old, new = rows.get("digits", cell, setting, 100), study.measured("digits", cell, setting, 100)
    # z is solved for to 1e-4 of ε, and rows are of a solver that stopped elsewhere
    assert old.epsilon == pytest.approx(new.epsilon, rel=2e-4)
    # other libraries of linear algebra may put a few of 300 samples into another class
    assert (old.validation, old.test) == pytest.approx((new.validation, new.test), abs=0.02)
