"""Tuning: the best setting of every method by a measure, with the same number of runs for each; tries are kept."""

import math
import re

import numpy as np
import pytest

from mpifed import load
from mpifed.cli.main import main
from mpifed.core.errors import UserError
from mpifed.features.stop import StopRules
from mpifed.results.result import RunRecord
from mpifed.sweeps.measure import FAILED, Score, parse_measure
from mpifed.sweeps.search import Trial
from mpifed.sweeps.tune import TrialResult, edge_options
from tests.helpers.commands import mpifed
from tests.sweeps.conftest import alike, listed, signal_in_round

TOY = ["data.clients=4", "data.features=5", "selection=all", "rounds=60", "stop.gradient=1e-4"]
DESCENT = "fedavg k0=1 step.name=constant step.a={}"
WORDS = ["--runs", "5", "--seeds", "3,4", "-o", "tuned", "-j", "1"]


def tune(*words, code=0):
    assert main(["tune", *TOY, *words, "-j", "1"]) == code


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """The folder in which gradient descent was tuned, and what was said."""
    here = tmp_path_factory.mktemp("tuned")
    return here, mpifed("tune", *TOY, "--method", DESCENT.format("0.001..10"), *WORDS, "-q", cwd=here)


def rounds_of(here, step):
    """The rounds that gradient descent takes on the toy with this step size, mean over seeds; inf if too many."""
    results = [load(here / "tuned" / f"fedavg,seed={seed},a={step}.h5") for seed in (3, 4)]
    return np.mean([one.cr if one.stop_reason.startswith("gradient") else math.inf for one in results])


def test_the_best_step_of_gradient_descent_is_found_and_tries_are_kept(tuned):
    here, told = tuned
    assert (told.code, told.err) == (0, "")
    head, row, *_ = told.out.splitlines()
    assert head.split() == ["method", "tried", "best", "rounds"]
    steps = [0.001, 0.01, 0.1, 1.0, 10.0]
    taken = {step: rounds_of(here, step) for step in steps}
    best = min(taken, key=taken.get)
    assert math.isfinite(taken[best])
    assert row.split()[:3] == ["fedavg", "5", f"step.a={best}"]
    assert float(row.split()[3]) == pytest.approx(taken[best], abs=0.5)
    assert "settings diverged" in row
    files = [f"fedavg,seed={seed},a={step}.h5" for step in steps for seed in (3, 4)]
    assert listed(here / "tuned") == sorted([*files, "best.toml"])


def test_the_second_call_runs_nothing_and_the_best_settings_are_methods_that_sweep_runs(tuned):
    here, first = tuned
    before = {path.name: path.stat().st_mtime_ns for path in (here / "tuned").glob("*.h5")}
    second = mpifed("tune", *TOY, "--method", DESCENT.format("0.001..10"), *WORDS, cwd=here)
    assert second.out.startswith("10 of 10 points are finished already\n10 of 10 finished\n")
    assert second.out.splitlines()[-4:] == first.out.splitlines()[-4:]
    assert {path.name: path.stat().st_mtime_ns for path in (here / "tuned").glob("*.h5")} == before
    assert "python -m mpifed sweep data.clients=4" in second.out
    words = ["--methods", "tuned/best.toml", "--grid", "seed=0:2", "-o", "compared", "-q"]
    assert mpifed("sweep", *TOY, *words, cwd=here).code == 0
    one, other = (load(path).config["algorithm"] for path in (here / "compared").glob("*.h5"))
    best = float(re.search(r"step\.a=(\S+)", first.out)[1])
    assert one == other == one | {"k0": 1, "step": {"name": "constant", "a": best}}


def test_after_a_signal_there_is_no_table_and_the_same_command_goes_on(here, capsys, monkeypatch):
    words = ["--method", DESCENT.format("0.001..0.1"), "--runs", "3", "--seeds", "3", "-q"]
    with signal_in_round(monkeypatch, 80):
        tune(*words)
    out = capsys.readouterr().out
    assert "1 of 3 finished; run the same command again to continue" in out
    assert "method" not in out
    tune(*words)
    assert capsys.readouterr().out.startswith("method  tried  best")


@pytest.mark.slow
def test_processes_and_groups_of_ranks_tune_alike(here):
    words = ["tune", *TOY, "--method", DESCENT.format("0.01..0.1"), "--runs", "2", "--seeds", "3", "-q"]
    assert main([*words, "-o", "one", "-j", "1"]) == 0
    assert main([*words, "-o", "two", "-j", "2"]) == 0
    assert mpifed(*words, "-o", "groups", "--each", "1", ranks=4, cwd=here).code == 0
    names = listed(here / "one")
    assert len(names) == 3
    for other in ("two", "groups"):
        alike(here / "one", here / other, names[1:])
    assert (here / "groups" / "best.toml").read_text() == (here / "one" / "best.toml").read_text()


def test_every_method_has_the_same_number_of_runs_and_what_is_short_is_told(here, capsys):
    (here / "methods.toml").write_text(
        '[[method]]\nlabel = "descent"\nname = "fedavg"\nk0 = 1\nstep = {name = "constant", a = "0.01..0.1"}\n'
        '[[method]]\nname = "fedavg"\nk0 = [1, 2]\nstep = {name = "constant", a = 0.05}\n'
        '[[method]]\nname = "scaffold"\n'
    )
    tune("rounds=5", "--methods", "methods.toml", "--runs", "4", "--seeds", "3", "-q", "-o", "tuned")
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:4]]
    assert [row[:2] for row in rows] == [["descent", "4"], ["fedavg", "2"], ["scaffold", "4"]]
    assert len(list((here / "tuned").glob("scaffold,*.h5"))) == 4


def test_the_same_method_twice_needs_a_label_which_the_command_line_may_give(here, capsys):
    first, second = "fedavg k0=1 step.a=0.05,0.1", "fedavg k0=2 step.a=0.05,0.1"
    assert main(["tune", *TOY, "--method", first, "--method", second, "--seeds", "3", "-q"]) == 2
    said = "two methods are called 'fedavg': give one a name of its own"
    assert f'{said}, label = "NAME" in its table [[method]], or label=NAME among the words of --method' in (
        capsys.readouterr().err
    )
    assert main(["tune", *TOY, "--method", first, "--method", f"{second} label=two", "--seeds", "3", "-q"]) == 0
    rows = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:3]]
    assert rows == ["fedavg", "two"]
    assert mpifed("sweep", *TOY, "--methods", "tuned/best.toml", "--grid", "seed=0:1", "-q", cwd=here).code == 0


def test_an_end_of_the_range_is_said_in_the_table_too(here, capsys):
    def tried(**options):
        return TrialResult(Trial(options, {}), [Score(1.0, 0.0)], Score(1.0, 0.0), 0, 0)

    every = [tried(t=t, k0=k0, H="gram") for t in (0.1, 1.0, 10.0) for k0 in (1, 5)]
    assert edge_options(tried(t=10.0, k0=1, H="gram"), every) == ["t is at the upper end of what was tried"]
    assert edge_options(tried(t=0.1, k0=1, H="gram"), every) == ["t is at the lower end of what was tried"]
    assert edge_options(tried(t=1.0, k0=5, H="gram"), every) == []
    tune("--method", DESCENT.format("0.001..0.01"), "--runs", "3", "--seeds", "3", "-q", "--measure", "objective")
    assert "step.a is at the upper end of what was tried" in capsys.readouterr().out


def test_a_failure_that_is_not_divergence_is_told(here, capsys):
    study = ["data=quadratic", "data.clients=3", "rounds=2", "--measure", "objective"]
    assert main(["tune", *study, "--method", "fedadmm-deep batch_size=9 lr=0.1,0.2", "--seeds", "3", "-q"]) == 1
    out, err = capsys.readouterr()
    assert "2 points failed: algorithm.batch_size = 9 is wrong" in err
    assert "did not finish and count as never there: 2 runs" in out


GRADIENT = StopRules(gradient=1e-3)
CURVE = [8.0, 4.0, 0.5, 2.0, 0.4, 0.2]


def result(status="finished", reason="gradient: 1e-4 <= 1e-3"):
    rounds = {
        "round": np.arange(6),
        "objective": np.array(CURVE),
        "grad_norm_sq": np.array(CURVE) / 100,
        "accuracy": np.array([0.1, 0.5, np.nan, 0.7, 0.8, np.nan]),
        "bytes_up": 10.0 * np.arange(6),
        "bytes_down": 20.0 * np.arange(6),
    }
    attrs = {"status": status, "stop_reason": reason}
    return RunRecord("one.h5", attrs, rounds, {}, {}, np.zeros((0, 0)), None, None, {})


def test_the_value_of_a_measure():
    values = {"rounds": 5.0, "bytes": 150.0, "objective": 0.2, "accuracy": -0.8}  # less is better
    values |= {"rounds to objective <= 1": 2.0, "rounds to objective <= 1 for good": 4.0}
    values |= {"bytes to objective <= 1": 60.0, "rounds to accuracy >= 0.7": 3.0}
    values |= {"rounds to objective <= 0.1": math.inf, "rounds to objective <= 0.1 for good": math.inf}
    values["rounds to objective <= 9 for good"] = 0.0
    assert {text: parse_measure(text, GRADIENT).score(result()).value for text in values} == values


def test_a_run_that_does_not_get_there_is_judged_by_how_near_it_came_and_one_that_failed_has_no_value():
    score = parse_measure("rounds to objective <= 0.1", GRADIENT).score(result())
    assert score == Score(math.inf, np.mean(CURVE))
    at_limit = parse_measure("rounds", GRADIENT).score(result(reason="rounds: 5"))
    assert at_limit == Score(math.inf, np.mean(CURVE))
    assert parse_measure("rounds", GRADIENT).score(result(status="failed")) == FAILED


def test_a_measure_that_cannot_be_is_refused():
    for text, stop, sentence in (
        ("round", GRADIENT, "unknown measure 'round'; did you mean 'rounds'?"),
        ("rounds to loss <= 1", GRADIENT, "unknown measure 'loss'"),
        ("rounds to objective < 1", GRADIENT, "write NAME or NAME to NAME <= NUMBER"),
        ("rounds to objective <= low", GRADIENT, "low is not a number"),
        ("rounds", StopRules(), "the study has no stop rule"),
        ("rounds to objective_gap <= 1", GRADIENT, "objective_gap needs stop.optimum"),
    ):
        with pytest.raises(UserError, match=re.escape(sentence)):
            parse_measure(text, stop)
    with pytest.raises(UserError, match=r"one\.h5 has no column personal_accuracy"):
        parse_measure("personal_accuracy", GRADIENT).score(result())


def test_a_study_is_tuned_that_the_method_named_by_default_could_not_do(tmp_path):
    words = ["data.clients=4", "data.features=5", "rounds=5", "asynchronous.arrivals=1", "system.speed=10"]
    words += ["--method", "fedbuff lr=0.1,0.2", "--runs", "2", "--seeds", "1", "-o", str(tmp_path / "tuned")]
    assert main(["tune", *words, "-j", "1", "-q"]) == 0
    assert len(listed(tmp_path / "tuned")) == 3
