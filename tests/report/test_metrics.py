"""Metrics: how they are named, scaled and read off a run."""

import pytest

from mpifed.core.errors import UserError
from mpifed.report.metrics import available, latex_title, requested, scale, title, unit
from tests.helpers.recorded_runs import recorded


def test_bytes_have_the_unit_of_the_largest_and_other_units_stay():
    limits = {0: (1, "B"), 999.9: (1, "B"), 999.95: (1e3, "kB"), 999_949: (1e3, "kB"), 999_950: (1e6, "MB")}
    limits |= dict.fromkeys((1e15, 1e21), (1e15, "PB"))
    assert {largest: scale("byte", largest) for largest in limits} == limits
    assert scale("s", 1e9) == (1, "s")
    assert scale("1", 1e9) == (1, "")


def test_a_title_is_the_symbol_or_the_name_and_the_unit_which_an_algorithm_may_declare():
    assert title("grad_norm_sq") == "‖∇f‖²"
    assert title("tct", "s") == "TCT (s)"
    assert title("inner_steps") == "inner steps"
    assert title("lap_seconds", "s") == "lap (s)"
    assert latex_title("epsilon") == r"named $\varepsilon$ $\times$ uploads"
    assert latex_title("my_column") == "my column"
    assert latex_title("bytes", "kB") == "up + down (kB)"
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
