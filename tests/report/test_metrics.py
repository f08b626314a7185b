"""Metrics: how they are named, scaled and read off a run."""

from __future__ import annotations

import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.report.metrics import available, column, final, latex_title, requested, scale, title, unit
from tests.helpers.recorded_runs import recorded


@pytest.mark.parametrize(
    ("largest", "expected"),
    [
        (0, (1, "B")),
        (999.9, (1, "B")),
        (999.95, (1e3, "kB")),
        (999_949, (1e3, "kB")),
        (999_950, (1e6, "MB")),
        (1e15, (1e15, "PB")),
        (1e21, (1e15, "PB")),
    ],
)
def test_bytes_have_the_unit_of_the_largest(largest, expected):
    assert scale("byte", largest) == expected


def test_other_units_stay():
    assert scale("s", 1e9) == (1, "s")
    assert scale("1", 1e9) == (1, "")


def test_a_title_is_the_symbol_or_the_name_and_the_unit():
    assert title("grad_norm_sq") == "‖∇f‖²"
    assert title("tct", "s") == "TCT (s)"
    assert title("inner_steps") == "inner steps"
    assert title("lap_seconds", "s") == "lap (s)"
    assert latex_title("epsilon") == r"named $\varepsilon$ $\times$ uploads"
    assert latex_title("my_column") == "my column"
    assert latex_title("bytes", "kB") == "up + down (kB)"


def test_which_value_is_better():
    names = ("objective", "bytes", "accuracy", "dual_objective", "snr", "asked", "column of an algorithm")
    assert [column(name).better for name in names] == [-1, -1, 1, -1, 0, 0, 0]


def test_the_final_value_is_the_last_finite_one_or_a_sum_over_rounds():
    run = recorded(objective=(8.0, 4.0, np.nan), columns={"late": (0, 1, 2), "epsilon": (0.0, 1.0, 2.0)})
    assert [final(run, name) for name in ("objective", "late", "epsilon", "bytes", "rounds")] == [4, 3, 2, 8000, 2]
    assert np.isnan(final(run, "accuracy"))


def test_a_column_of_an_algorithm_has_the_unit_that_it_declares():
    run = recorded(columns={"lap": (1.0, 2.0, 3.0)})
    run.about["lap"] = ("m", "Way.")
    assert unit("lap", [run]) == "m"
    assert unit("lap") == "1"
    assert "lap" in available([run])


def test_requested_metrics_are_those_named_or_the_usual_ones_that_a_run_has():
    run = recorded()
    assert requested([run], ["tct", "objective"]) == ["tct", "objective"]
    assert "accuracy" not in requested([run], None)
    with pytest.raises(UserError, match="unknown column 'acuracy'"):
        requested([recorded(columns={"accuracy": (0, 0, 1)})], ["acuracy"])
