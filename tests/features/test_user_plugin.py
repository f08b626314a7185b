"""An error in a hook of a user's plug-in, and a wrong value from one, is a sentence that begins with the class."""

import re
from pathlib import Path

import pytest

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
