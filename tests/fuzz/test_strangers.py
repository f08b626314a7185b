"""Result files and checkpoints of strangers: a command answers, or refuses them in one sentence that names the file.

By default a twentieth of the names, each with another damage, is spread over the commands that read most of a file; the
slow tests take all names with all damages, and with MPIFED_FUZZ every command meets all of them.
"""

import os
import re
import shutil
import time

import h5py
import pytest

from mpifed.experiment.checkpoint import checkpoint_folder
from tests.helpers import damaged_checkpoints, damaged_results
from tests.helpers.commands import mpifed
from tests.hostile.test_refusals import FRAMES

SECONDS = 20  # of the processor
EVERY = bool(os.environ.get("MPIFED_FUZZ"))
RUN = """run algorithm=fedgia algorithm.certify=true problem=logistic problem.mu=0.1 data=gaussian data.clients=8
data.features=3 rounds=5 evaluate.clients=true evaluate.unseen=0.3 record.models=2 system.latency=0.1 kernels=numpy
stop.gradient=0.0 -q -o x.h5"""
COMMANDS = {
    "show": "show -v x.h5",
    "compare": "compare good.h5 x.h5 --all",
    "clients": "compare good.h5 x.h5 --clients",
    "fit": "fit x.h5",
    "certify": "certify x.h5",
    "resume": "resume x.h5 rounds=7 -q",
    "page": "plot x.h5 good.h5 -o x.html --force",
    "plot": "plot x.h5 good.h5 -o x.svg --force",
    "timeline": "plot x.h5 --timeline -o x.svg --force",
    "curves": "plot x.h5 --clients -o x.svg --force",
}
CONTROL = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f]")


@pytest.fixture(scope="module")
def strangers(tmp_path_factory):
    """A folder with a result file of all that a run can record, as good.h5 and x.h5 with its checkpoint."""
    place = tmp_path_factory.mktemp("strangers")
    done = mpifed(*RUN.split(), cwd=place)
    assert done.code == 0, done.err
    shutil.copy(place / "x.h5", place / "good.h5")
    shutil.copytree(checkpoint_folder(place / "x.h5"), place / "whole")
    return place


def dealt(cases, share):
    """The cases of a share (k, n): each is one of n by its number and that of its name, so that both are mixed."""
    k, n = share
    order = {name: number for number, name in enumerate(dict.fromkeys(name for name, *_ in cases))}
    return [case for number, case in enumerate(cases) if (number + order[case[0]]) % n == k]


def few(cases, share):
    """Of each name one case, with another damage than the name before."""
    names = {}
    for case in cases:
        names.setdefault(case[0], []).append(case)
    chosen = [own[(7 * number) % len(own)] for number, own in enumerate(names.values())]
    return dealt(chosen, share)


def refused_or_answered(words, where, codes, names):
    """Whether a command answers; where it does not, one sentence says why, without a character that is no text."""
    begun = time.process_time()
    done = mpifed(*words.split(), cwd=where)
    assert time.process_time() - begun < SECONDS
    assert done.code in codes, done.err
    assert not CONTROL.search(done.out + done.err), ascii(done.out + done.err)
    assert not FRAMES.search(done.err), done.err
    if done.code:
        assert re.fullmatch(r"mpifed: [^\n]*\n", done.err), done.err
        assert done.code == 1 or names in done.err, done.err
    return done.code == 0


def spoilt(place, spoil):
    """Put the good file, spoilt, into the place of x.h5, and the whole checkpoint beside it."""
    shutil.copy(place / "good.h5", place / "x.h5")
    with h5py.File(place / "x.h5", "r+") as out:
        spoil(out)
    shutil.rmtree(checkpoint_folder(place / "x.h5"), ignore_errors=True)
    shutil.copytree(place / "whole", checkpoint_folder(place / "x.h5"))


def sweep(place, command, cases):
    for name, damage, spoil in cases:
        spoilt(place, spoil)
        try:
            refused_or_answered(COMMANDS[command], place, (0, 2), "x.h5")
        except AssertionError as error:
            raise AssertionError(f"{name}, {damage}: {error}") from None


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    monkeypatch.setattr("mpifed.results.result.PATIENCE", ())


QUICK = ("show", "clients", "resume", "page")  # together they read all of a file, and write a page of it


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("command", QUICK)
def test_a_damaged_result_is_read_or_refused_in_one_sentence(command, strangers):
    share = (QUICK.index(command), 20 * len(QUICK))
    spoilt(strangers, lambda out: None)
    assert refused_or_answered(COMMANDS[command], strangers, (0,), "")
    sweep(strangers, command, few(damaged_results.cases(strangers / "good.h5"), share))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("command", COMMANDS)
def test_every_damage_of_a_result(command, strangers):
    share = (0, 1) if EVERY else (list(COMMANDS).index(command), len(COMMANDS))
    sweep(strangers, command, dealt(damaged_results.cases(strangers / "good.h5"), share))


STUDIES = {
    "scaffold": "algorithm=scaffold",
    "fedopt": "algorithm=fedopt",
    "asynchronous": "algorithm=fedgia-async asynchronous.arrivals=2 system.latency=0.1",
    "graph": "algorithm=gradient-tracking graph=ring system.latency=0.1",
    "compressed": "algorithm=fedavg compress.up=topk compress.up.k=2 compress.down=topk compress.down.k=2",
}


def tampered(place, study, chosen):
    """Tamper with the checkpoint of a study in many ways; a run whose numbers diverge ends with code 1."""
    path = place / "x.h5"
    words = f"run {STUDIES[study]} data.clients=5 data.features=3 rounds=3 stop.gradient=0.0 kernels=numpy -q -o x.h5"
    done = mpifed(*words.split(), cwd=place)
    assert done.code == 0, done.err
    whole = path.read_bytes()
    shutil.copytree(checkpoint_folder(path), place / "whole")
    for name, damage, spoil in chosen(damaged_checkpoints.cases(checkpoint_folder(path))):
        spoil()
        try:
            refused_or_answered("resume x.h5 rounds=5 -q", place, (0, 1, 2), "x.h5")
        except AssertionError as error:
            raise AssertionError(f"{name}, {damage}: {error}") from None
        path.write_bytes(whole)
        shutil.rmtree(checkpoint_folder(path), ignore_errors=True)
        shutil.copytree(place / "whole", checkpoint_folder(path))
    assert refused_or_answered("resume x.h5 rounds=5 -q", place, (0,), "")


def test_a_tampered_checkpoint_is_taken_or_refused_in_one_sentence(tmp_path):
    tampered(tmp_path, "scaffold", lambda cases: few(cases, (0, 8)))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("study", STUDIES)
def test_every_damage_of_a_checkpoint(study, tmp_path):
    tampered(tmp_path, study, lambda cases: cases)
