"""The round loop ends a run that diverges, or whose numbers are not finite."""

from __future__ import annotations

import re

from tests.experiment.conftest import run, status


def test_numbers_that_are_not_finite_end_the_run_and_name_the_client(tmp_path):
    path = tmp_path / "out.h5"
    done = run(
        "run",
        "algorithm=fedavg",
        "algorithm.step=constant",
        "algorithm.step.a=1e200",
        "data.clients=13",
        "rounds=9",
        "stop.diverged=0",
        "-q",
        "-o",
        path,
        code=1,
    )
    assert re.search(
        r"^mpifed: the (reply|loss or gradient) of client \d+ is not finite in round \d, method \w+: .* look at "
        r"algorithm\.step$",
        done.err,
        re.M,
    ), done.err
    assert "Warning" not in done.err
    assert status(path)[0] == "failed"


def test_divergence_ends_the_run_unless_told_to_go_on(tmp_path):
    path = tmp_path / "out.h5"
    study = [
        "run",
        "algorithm=fedavg",
        "algorithm.step=constant",
        "algorithm.step.a=3.0",
        "data.clients=13",
        "rounds=9",
        "-q",
    ]
    done = run(*study, "-o", path, code=1)
    assert re.search(r"f diverges: \S+ in round \d after \S+ at the start, so look at algorithm.step", done.err)
    assert status(path)[0] == "failed"
    run(*study, "stop.diverged=0", "-o", tmp_path / "on.h5")
