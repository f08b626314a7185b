"""An error in a hook of a user's feature, and a wrong value from one, is a sentence that begins with the class."""

import re
from pathlib import Path

import pytest

from mpifed.cli.main import main
from mpifed.features.feature import Plugin
from mpifed.features.own_feature import RULES
from mpifed.federation.callback import Callback

STUDY = ["algorithm=gd", "data.clients=4", "data.features=3", "rounds=2", "kernels=numpy", "-q", "-o", "out.h5"]
SAYING = """
import mpifed
from mpifed.features.rule import Rule

{fail}

class Saying(mpifed.Plugin, mpifed.Callback):
    {hook}
"""
FAIL = """
def fail(*args):
    raise TypeError("mine")
"""
HOOKS = [name for cls in (Plugin, Callback) for name in vars(cls) if callable(vars(cls)[name])]
WRONG = {  # hook: (what it returns, how the sentence goes on)
    "data": ("None", "returns None: it must return a mpifed.Dataset"),
    "prepare": ("[]", "returns a list of 0: it must return the setup"),
    "schedule": ("3", "returns the number 3: it must return a schedule or None"),
    "notes": ("[3]", "returns the number 3 among its notes: each must be a text"),
    "attributes": ("{'mine': object()}", "returns an object for mine: an attribute of a result is a text"),
    "transforms": ("[3]", "returns the number 3 among its transforms: each must be an object of such a class"),
    "callbacks": ("3", "returns the number 3: it must return a list of callbacks"),
    "on_evaluate": ("{'mine': 'x'}", "returns a text for mine: it must be a number, or a table by client"),
    "on_end": ("None", "returns None: it must return a dictionary"),
}


def said(hook, fail, monkeypatch, tmp_path, capsys):
    monkeypatch.chdir(tmp_path)
    Path("saying.py").write_text(SAYING.format(hook=hook, fail=fail), "utf-8")
    assert main(["run", 'features=["saying.py:Saying"]', *STUDY]) == 2
    return capsys.readouterr().err


@pytest.mark.parametrize("name", sorted({*HOOKS, *RULES}))
def test_an_error_in_a_hook_is_a_sentence_with_its_class_and_line(name, monkeypatch, tmp_path, capsys):
    hook = f'{name} = [Rule(fail, "")]' if name in RULES else f"def {name}(self, *args):\n        fail()"
    found = said(hook, FAIL, monkeypatch, tmp_path, capsys)
    assert re.fullmatch(rf"mpifed: Saying\.{name} of saying\.py fails in line \d+: TypeError: mine\n", found)


def test_an_error_in_what_is_called_later_is_one_too(monkeypatch, tmp_path, capsys):
    hook = "def notes(self):\n        yield 'a note'\n        fail()"
    found = said(hook, FAIL, monkeypatch, tmp_path, capsys)
    assert re.fullmatch(r"mpifed: Saying\.notes of saying\.py fails in line \d+: TypeError: mine\n", found)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_is_refused(name, monkeypatch, tmp_path, capsys):
    value, words = WRONG[name]
    found = said(f"def {name}(self, *args):\n        return {value}", "", monkeypatch, tmp_path, capsys)
    assert found.startswith(f"mpifed: Saying.{name} of saying.py {words}")
