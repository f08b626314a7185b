"""An error in a hook of a user's plug-in, and a wrong value from one, is a sentence that begins with the class."""

import re
from pathlib import Path

import pytest

import mpifed
from mpifed.cli.main import main
from mpifed.features.feature import Plugin
from mpifed.federation.callback import Callback

STUDY = ["algorithm=gd", "data.clients=4", "data.features=3", "rounds=2", "kernels=numpy", "-q", "-o", "out.h5"]
SAYING = """
import mpifed
from mpifed.features.conflict import Conflict

{fail}

class Saying(mpifed.extend.Plugin, mpifed.extend.Callback):
    {hook}
"""
FAIL = """
def fail(*args):
    raise TypeError("mine")
"""
HOOKS = sorted(name for cls in (Plugin, Callback) for name in vars(cls) if callable(vars(cls)[name]))
WRONG = {  # hook: (what it returns, how the sentence goes on)
    "data": ("None", "returns None: it must return a Dataset"),
    "prepare": ("[]", "returns a list of 0: it must return a RunSpec"),
    "schedule": ("3", "returns the number 3: it must return a Schedule, or None"),
    "transforms": ("3", "returns the number 3: it must return a Sequence"),
    "attributes": ("[3]", "returns a list of 1: it must return a dictionary"),
    "on_evaluate": ("None", "returns None: it must return a dictionary"),
    "on_end": ("None", "returns None: it must return a dictionary"),
}


def said(hook, fail, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    Path("saying.py").write_text(SAYING.format(hook=hook, fail=fail), "utf-8")
    assert main(["run", 'plugins=["saying.py:Saying"]', *STUDY]) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("name", sorted({*HOOKS, "conflicts"}))
def test_an_error_in_a_hook_is_a_sentence_with_its_class_and_line(name, monkeypatch, tmp_path, capsys):
    hook = f"def {name}(self, *args):\n        fail()"
    if name == "conflicts":
        hook = 'conflicts = [Conflict(("Saying", "all else"), "", fail)]'
    found = said(hook, FAIL, monkeypatch, tmp_path, capsys)
    assert re.fullmatch(rf"mpifed: Saying\.{name} of saying\.py fails in line \d+: TypeError: mine\n", found)


@pytest.mark.parametrize(
    "hook",
    [
        "def notes(self):\n        yield 'a note'\n        fail()",
        "def transforms(self, setup, fed):\n        yield fail()",
    ],
    ids=["notes", "transforms"],
)
def test_an_error_in_what_is_called_later_is_one_too(hook, monkeypatch, tmp_path, capsys):
    found = said(hook, FAIL, monkeypatch, tmp_path, capsys)
    assert re.fullmatch(r"mpifed: Saying\.\w+ of saying\.py fails in line \d+: TypeError: mine\n", found)


def test_what_a_plug_in_does_not_go_with_is_a_row_of_its_own(monkeypatch, tmp_path, capsys):
    row = 'conflicts = [Conflict(("Saying", "gd"), "Saying is not for {name}", lambda c: c.algorithm.label() == "gd")]'
    assert said(row, "", monkeypatch, tmp_path, capsys) == "mpifed: Saying is not for gd\n"


def test_a_study_that_names_it_in_features_is_told_where(capsys):
    assert main(["run", 'features=["saying.py:Saying"]']) == 2
    assert "features cannot be set: plug-ins of your own stand in plugins, as in plugins = " in capsys.readouterr().err


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_is_refused(name, monkeypatch, tmp_path, capsys):
    value, words = WRONG[name]
    found = said(f"def {name}(self, *args):\n        return {value}", "", monkeypatch, tmp_path, capsys)
    assert found.startswith(f"mpifed: Saying.{name} of saying.py {words}")


INSTALLED = """
import numpy as np
from mpifed.extend import Callback, Plugin, Transform

class Changing(Transform):
    {transform}

class Told(Callback):
    {callback}

class Saying(Plugin):
    def transforms(self, setup, fed):
        return {transforms}

    def callbacks(self):
        return [Told()]
"""
PASS = {"transform": "pass", "callback": "pass", "transforms": "[]"}
ENCODE = {"transforms": "[Changing()]"}
MINE = {  # how the sentence goes on: what the plug-in installs
    r"Changing\.encode_array of saying\.py fails in line \d+: TypeError: mine": ENCODE
    | {"transform": "def encode_array(self, *args): raise TypeError('mine')"},
    r"Changing makes an upload of shape \(1, 1\) of one of shape \(1, 3\)": ENCODE
    | {"transform": "def encode_array(self, batch, name, rows): return rows[:, :1]"},
    "the transform Changing changes messages at the server, and clients do not have it: ``transforms`` of its": {
        "transforms": "[] if fed is None else [Changing()]"
    },
    "two transforms have the name Changing: give one of them another": {"transforms": "[Changing(), Changing()]"},
    r"Told\.after_round of saying\.py fails in line \d+: TypeError: mine": {
        "callback": "def after_round(self, *args): raise TypeError('mine')"
    },
    "Told records bytes_up, which is there already: rename its column": {
        "callback": "def on_evaluate(self, fed, x): return {'bytes_up': 1.0}"
    },
    "Told has the attribute seed, which results have: rename it": {
        "callback": "def attributes(self, replayed): return {'seed': 3}"
    },
}


def install(parts, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("saying.py").write_text(INSTALLED.format(**PASS | parts), "utf-8")
    return main(["run", 'plugins=["saying.py:Saying"]', *STUDY])


@pytest.mark.parametrize("words", MINE)
def test_a_mistake_in_what_a_plug_in_installs_is_a_sentence(words, monkeypatch, tmp_path, capsys):
    assert install(MINE[words], monkeypatch, tmp_path) == 2
    assert re.match(rf"mpifed: {words}", capsys.readouterr().err)


@pytest.mark.parametrize(
    "wrong", ["{'a/b': 1.0}", "{'mine': 'x'}", "{'mine': {}}", "{'clients': {'mine': np.ones(2)}}"]
)
def test_what_no_result_takes_names_the_hook_that_returned_it(wrong, monkeypatch, tmp_path, capsys):
    assert install({"callback": f"def on_evaluate(self, fed, x): return {wrong}"}, monkeypatch, tmp_path) == 1
    told = capsys.readouterr().err
    assert re.match(r"mpifed: Told\.on_evaluate of saying\.py \(line \d+\) returned a dict of 1, and then rank 0", told)


RIGHT = {  # what the sentences above advise
    "both ends": ENCODE,
    "another name": {"transforms": "[Changing(), type('Other', (Changing,), {})()]"},
    "another column": {
        "callback": "def on_evaluate(self, fed, x): return {'mine': 2.0, 'clients': {'mine': np.ones(fed.m)}}"
    },
    "another attribute": {"callback": "def attributes(self, replayed): return {'mine': 3}"},
}


@pytest.mark.parametrize("cure", RIGHT)
def test_what_these_sentences_advise_runs(cure, monkeypatch, tmp_path):
    assert install(RIGHT[cure], monkeypatch, tmp_path) == 0
    result = mpifed.load("out.h5")
    assert result.status == "finished"
    assert cure != "another column" or (result.rounds["mine"] == 2).all()


def test_callbacks_are_asked_for_once(monkeypatch, tmp_path):
    """What one of them learns from its notes is there after the rounds."""
    callback = "def notes(self):\n        self.told = 5\n        return []\n\n"
    callback += "    def on_end(self, fed, x):\n        return {'clients': {'told': np.full(fed.m, self.told)}}"
    assert install({"callback": callback}, monkeypatch, tmp_path) == 0
    assert (mpifed.load("out.h5").clients["told"] == 5).all()


COUNTING = """
import numpy as np
import mpifed

class Counting(mpifed.extend.Plugin, mpifed.extend.Callback):
    def after_evaluation(self, fed, x, row):
        self.state["sum"] = np.array(self.state.get("sum", 0.0) + row["objective"])

    def on_evaluate(self, fed, x):
        return {"sum_before": float(self.state.get("sum", 0.0))}
"""


def test_what_a_callback_keeps_in_its_state_goes_on_when_a_run_is_resumed(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    Path("counting.py").write_text(COUNTING, "utf-8")
    study = {"plugins": ["counting.py:Counting"], "algorithm": "gd", "data": {"clients": 4, "features": 3}}
    study |= {"stop": {"gradient": 0.0}}
    whole = mpifed.run(study, rounds=6, progress=False)
    mpifed.run(study, rounds=3, path="out.h5", progress=False)
    resumed = mpifed.resume("out.h5", {"rounds": 6}, progress=False)
    sums = whole.rounds["sum_before"]
    assert sums.tolist() == [0.0, *whole.rounds["objective"].cumsum()[:-1]]
    assert resumed.rounds["sum_before"].tolist() == sums.tolist()


ONE_NAME = "two callbacks of the name Counting keep state: give one of them another name"
NO_TABLE = "Counting.state is no table of arrays by name, which checkpoints save"


@pytest.mark.parametrize(("own", "wrong"), [('["own"] = row["objective"]', ONE_NAME), (" = 3", NO_TABLE)])
def test_state_that_a_checkpoint_cannot_tell_or_hold_is_refused(own, wrong, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    Path("one.py").write_text(COUNTING, "utf-8")
    Path("two.py").write_text(re.sub(r"state\[.*", f"state{own}", COUNTING, count=1).split("    def on_")[0])
    plugins = ["one.py:Counting", "two.py:Counting"] if wrong == ONE_NAME else ["two.py:Counting"]
    assert main(["run", f"plugins={plugins}", *STUDY]) == 2
    assert capsys.readouterr().err == f"mpifed: {wrong}\n"
