"""Certificates of runs: in the record, the same on any number of ranks, without a trace in bits and ledgers."""

from itertools import pairwise

import h5py
import numpy as np
import pytest

import mpifed
from mpifed.cli.main import main
from mpifed.experiment import config
from mpifed.experiment import optimum as certify
from mpifed.report.certificate import measure_bound
from tests.experiment.conftest import run

STUDY = {"data.clients": 6, "data.features": 5, "rounds": 8, "algorithm.t": 6.0, "seed": 2}
QUADRATIC = {"data": "quadratic", "data.clients": 6, "data.features": 4, "rounds": 120, "selection": "uniform"}


def bits(result):
    return {name: values.tobytes() for name, values in result.rounds.items() if "seconds" not in name}


@pytest.fixture(scope="module")
def certified(tmp_path_factory):
    """The result of a certified run, and its file, which no test changes."""
    path = tmp_path_factory.mktemp("certified") / "out.h5"
    return mpifed.run(STUDY, {"algorithm.certify": True}, path=path), path


@pytest.mark.parametrize("name", ["fedgia", "fedavg", "feddcd", "fedepm"])
def test_a_run_is_the_same_with_and_without_a_certificate(name):
    study = QUADRATIC | {"rounds": 5, "algorithm": name}
    without, with_ = (mpifed.run(study, {"algorithm.certify": wish}) for wish in (False, True))
    assert bits(without) == bits(with_)
    assert without.certificate is None
    assert "certificate" not in without.summary()
    assert with_.certificate.constants.at == "the minimum x*"


def test_the_record_and_a_copy_hold_what_the_command_prints(certified, tmp_path, capsys):
    result, path = certified
    result.save(tmp_path / "copy.h5")
    found = mpifed.load(path).certificate
    assert repr(found) == repr(mpifed.load(tmp_path / "copy.h5").certificate) == repr(result.certificate)  # nan
    again = certify.compute_certificate(config.experiment(result.config), result.x, result.cr)
    for one, other in zip(found.conditions, again.conditions, strict=True):  # other kernels may differ in the last bits
        assert (one.name, one.holds, one.left) == (other.name, other.holds, pytest.approx(other.left))
    assert [one.holds for one in found.conditions[:3]] == [True, True, True]
    for words in (["certify", str(path)], ["show", str(path)]):
        assert main(words) == 0
        told = capsys.readouterr().out
        assert "σ >= 6 r/m" in told
        assert "hold" in told
    assert "in this run" not in told


@pytest.mark.slow
def test_ranks_agree_to_the_bit_and_every_rank_can_certify_before_the_first_round(certified, tmp_path):
    study = [f"{key}={value}" for key, value in STUDY.items()]
    for rounds in (8, 0):
        run("run", *study, "algorithm.certify=true", f"rounds={rounds}", "-q", "-o", tmp_path / f"{rounds}.h5", ranks=2)
    assert repr(mpifed.load(tmp_path / "8.h5").certificate) == repr(certified[0].certificate)
    assert mpifed.load(tmp_path / "0.h5").certificate.constants.at == "the minimum x*"


def test_the_optimum_is_that_of_normal_equations_and_curvatures_are_those_of_the_matrices():
    setup = config.experiment({"data": {"name": "quadratic", "clients": 6, "features": 4}})
    X, y = setup.data.load(0, "float64").rows(0, 6)
    Q, b = X.reshape(6, 4, 4), y.reshape(6, 4)
    x = np.linalg.solve(Q.mean(0), b.mean(0))
    g = Q @ x - b
    found = certify.compute_certificate(setup).constants
    assert found.heterogeneity == pytest.approx(np.sum(g * g) / 6)
    assert found.f == pytest.approx(-b.mean(0) @ x / 2)
    assert (found.L_max, found.mu_min) == pytest.approx((np.linalg.eigvalsh(Q).max(), np.linalg.eigvalsh(Q).min()))
    setup = config.experiment({"data": {"clients": 4, "features": 3}, "seed": 1})
    data = setup.data.load(1, "float64")
    starts = np.cumsum([0, *data.sizes])
    A = [data.rows(0, 4)[0][a:b] for a, b in pairwise(starts)]
    spectra = [np.linalg.eigvalsh(a.T @ a / len(a)) for a in A]
    found = certify.compute_certificate(setup).constants
    assert found.mu_min == pytest.approx(min(s[0] for s in spectra))
    assert found.mu_max == pytest.approx(max(s[0] for s in spectra))
    assert found.L_max == pytest.approx(max(s[-1] for s in spectra))
    wide = config.experiment({"data": {"clients": 4, "features": 200}})
    assert certify.compute_certificate(wide).constants.mu_max == 0


def test_a_non_convex_problem_is_certified_at_the_final_model_and_one_without_constants_says_so(capsys):
    study = {"data": {"name": "gaussian", "clients": 5, "features": 4}, "problem": "nonconvex-logistic", "rounds": 3}
    result = mpifed.run(study, {"algorithm.certify": True})
    found = result.certificate.constants
    assert found.at == "the final model"
    assert found.f == pytest.approx(result.rounds["objective"][-1])
    assert found.grad_norm_sq == pytest.approx(result.rounds["grad_norm_sq"][-1])
    assert certify.compute_certificate(config.experiment(result.config)).constants.at == "the first model"
    words = ["algorithm=flame", "problem=svm", "data=gaussian", "data.clients=4", "data.features=3"]
    assert main(["certify", *words]) == 0
    told = capsys.readouterr().out
    assert "the problem does not tell" in told
    assert "cannot be decided" in told


def test_a_study_that_starts_from_the_model_of_another_run_is_certified_there(tmp_path):
    study = QUADRATIC | {"algorithm.certify": True, "algorithm.t": 6.0}
    before = mpifed.run(study, rounds=5, path=tmp_path / "out.h5").rounds["objective"]
    result = mpifed.run(study, start=str(tmp_path / "out.h5"))
    found = certify.compute_certificate(config.experiment(result.config))
    assert found.constants.f_first == pytest.approx(before[-1], rel=1e-12)
    assert found.constants.f < before[-1] < before[0]
    for one, other in zip(found.bounds, result.certificate.bounds, strict=True):
        assert one.value == pytest.approx(other.value, rel=1e-9)


@pytest.mark.parametrize("name", ["feddcd", "accfeddcd"])
def test_a_run_is_at_least_as_fast_as_its_theorem(name):
    result = mpifed.run(QUADRATIC, {"algorithm": name, "algorithm.dual": True, "algorithm.certify": True})
    found = result.certificate
    assert found.holds is True
    assert 0 < measure_bound(found.bounds[0], found, result)[0] <= found.bounds[0].value < 1


def test_fedgia_stays_below_its_bounds_and_is_faster_than_its_linear_rate_and_so_is_gradient_descent():
    result = mpifed.run(STUDY, {"algorithm.certify": True, "rounds": 40})
    for bound in result.certificate.bounds[:2]:
        assert 0 < measure_bound(bound, result.certificate, result)[0] <= bound.value
    result = mpifed.run(QUADRATIC, rounds=300, algorithm={"name": "fedgia", "t": 6.0, "certify": True})
    linear = result.certificate.bounds[2]
    assert 0 < measure_bound(linear, result.certificate, result)[0] < linear.value < 1
    options = {"algorithm": "fedavg", "algorithm.k0": 1, "algorithm.step": {"name": "constant", "a": 1.0}}
    result = mpifed.run(QUADRATIC | {"selection": "all"}, options | {"algorithm.certify": True, "rounds": 300})
    found = result.certificate
    assert found.holds is True
    assert measure_bound(found.bounds[1], found, result)[0] <= found.bounds[1].value * (1 + 1e-9)
    assert measure_bound(found.bounds[0], found, result)[0] <= found.bounds[0].value


MISTAKES = {"nothing.h5": "cannot be read", "a.toml": "cannot be read", "algorithm.k0=x": "algorithm.k0"}
MISTAKES |= {"algorithm.certify=3": "true or false", "fedgia": "write algorithm=fedgia"}
MISTAKES |= {"a.h5 rounds=3": "takes one result file", "--rounds 3": "write rounds=3"}


@pytest.mark.parametrize("words", MISTAKES)
def test_mistakes_are_one_sentence(words, capsys):
    assert main(["certify", *words.split()]) == 2
    told = capsys.readouterr().err
    assert MISTAKES[words] in told
    assert told.count("\n") == 1


def test_a_run_that_diverges_says_which_condition_failed(tmp_path):
    path = tmp_path / "out.h5"
    with pytest.raises(mpifed.RunError, match="diverges"):
        mpifed.run(STUDY, {"algorithm.certify": True, "algorithm.t": 1e-3, "rounds": 200}, path=path)
    result = mpifed.load(path)
    assert result.status == "failed"
    assert not result.certificate.conditions[1].holds
    assert "no   σ >= 6 r/m" in result.summary()


def test_a_resumed_run_has_the_same_certificate_and_a_damaged_one_is_refused(tmp_path):
    path = tmp_path / "out.h5"
    before = mpifed.run(STUDY, {"algorithm.certify": True}, path=path).certificate
    after = mpifed.resume(path, rounds=12).certificate
    assert after.conditions == before.conditions
    assert after.bounds[0].value == pytest.approx(before.bounds[0].value * 8 / 12)
    for key in ("left", "holds", "bound_source"):
        with h5py.File(path, "r+") as file:
            part = file["certificate"][key][()]
            del file["certificate"][key]
        with pytest.raises(mpifed.UserError):
            _ = mpifed.load(path).certificate
        with h5py.File(path, "r+") as file:
            file["certificate"][key] = part


class Mine(mpifed.algorithms.FedAvg, tag="mine"):
    """FedAvg with a theorem of its own."""

    def certificate(self, known):
        condition = mpifed.theory.Condition.of("k0 >= m", self.k0, ">=", known.m, "here")
        return mpifed.theory.Certificate("my theorem", [condition], [mpifed.theory.Bound("f", "1", 1.0, "here")], [])


def test_a_method_of_a_user_has_a_certificate_of_its_own():
    result = mpifed.run(STUDY | {"algorithm.t": None}, algorithm=Mine(k0=7, certify=True))
    assert result.certificate.conditions == [mpifed.theory.Condition("k0 >= m", 7.0, ">=", 6.0, True, "here")]
