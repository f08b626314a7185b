"""What certify says of the time of an asynchronous run: constants of the study, time to ε, the bound, a picture."""

import numpy as np
import pytest

import mpifed
from mpifed.cli.main import main
from mpifed.experiment import config, optimum
from mpifed.report.least_time import seconds_to
from mpifed.theory.least_time import homogeneous_bound

STUDY = {
    "data": "tridiagonal",
    "data.clients": 4,
    "data.features": 12,
    "problem.noise": 0.01,
    "algorithm": "fedbuff",
    "algorithm.k0": 1,
    "algorithm.lr": 0.2,
    "asynchronous.arrivals": 1,
    "system.speed": 6.0,
    "system.latency": 0.5,
    "rounds": 120,
}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    path = tmp_path_factory.mktemp("least") / "out.h5"
    return mpifed.run(STUDY, path=path), path


def setting(result, **changes):
    study = config.experiment(result.config | changes)
    return optimum.least_time_setting(
        study, optimum.compute_certificate(study, result.x, result.cr).constants, result.x
    )


def test_the_constants_are_those_of_the_study(run):
    found = setting(run[0])
    assert found.tau.tolist() == [12 / 6.0 + 2 * 0.5] * 4
    assert np.isclose(found.L, (1 + np.cos(np.pi / 13)) / 2)
    assert found.delta == pytest.approx(12 / (8 * 13))
    assert found.variance == pytest.approx(12 * 0.01**2)
    assert found.same
    assert found.estimated.keys() == {"L"}


def test_f_i_that_differ_batches_and_varying_times_are_told():
    study = {"data": "gaussian", "data.clients": 3, "data.samples": 20, "data.features": 4, "problem": "logistic"}
    study |= {"algorithm": "fedbuff", "algorithm.k0": 5, "algorithm.batch_size": 5, "system.jitter": 0.4}
    study |= {"system.speed": 10.0, "asynchronous.arrivals": 1, "rounds": 20}
    found = setting(mpifed.run(study))
    assert not found.same
    # an upload is five gradients of five samples
    assert np.allclose(found.tau, 5 / 10.0 * np.exp(0.4**2 / 2))
    assert found.estimated.keys() == {"L", "τ_i", "σ²"}
    assert 0 < found.variance < 10


def test_the_command_prints_time_bound_and_ratio_and_draws_them(run, tmp_path, capsys):
    result, path = run
    picture = tmp_path / "least.svg"
    assert main(["certify", str(path), "--eps", "1e-2,1e-9", "--picture", str(picture)]) == 0
    text = capsys.readouterr().out
    found = setting(result)
    least = homogeneous_bound(found.tau, found.L, found.delta, found.variance, 1e-2)
    seconds = seconds_to(result, 1e-2)
    rows = [line.split() for line in text.splitlines()]
    assert ["0.01", f"{seconds:.4g}", f"{least:.4g}", f"{seconds / least:.4g}"] in rows
    assert any(row[:3] == ["1e-09", "not", "reached"] for row in rows)
    assert "variance of a gradient; known" in text
    assert "estimated: an upper bound, max r_i" in text
    assert picture.read_bytes().startswith(b"<?xml")


def test_mistakes_are_sentences(run, capsys):
    study = ["data.clients=4", "data.features=5"]
    for words, told in {
        ("certify", str(run[1]), "--eps", "0"): "--eps '0' is wrong: ε, a bound of ‖∇f‖², must be a number above 0",
        ("certify", str(run[1]), "--eps", "1e-3,-1"): "--eps '-1' is wrong: ε, a bound of ‖∇f‖², must be",
        ("certify", *study, "--eps", "1"): "--eps 1 is wrong without [asynchronous]: the least time is about",
        ("certify", *study, "--picture", "a.txt"): "a.txt",
    }.items():
        assert main(list(words)) == 2
        assert told in capsys.readouterr().err
