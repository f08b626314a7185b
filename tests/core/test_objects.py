"""Values of a Python program become plain values of an experiment; classes get names by which they are found."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.algorithms.fedavg import FedAvg
from mpifed.algorithms.parts.step_sizes import ConstantStep, Step
from mpifed.core import plugins
from mpifed.core.errors import UserError
from mpifed.core.objects import study_name, to_plain


@pytest.fixture(autouse=True)
def forget():
    plugins.passed_classes.clear()
    yield
    plugins.passed_classes.clear()


class Harmonic(Step):
    """γ_k = a/(1 + k)."""

    a: float = 1.0

    def gamma(self, k, k0, d):
        return self.a / (1 + k)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, True),
        (np.bool_(True), True),
        (np.float32(0.5), 0.5),
        (np.int64(3), 3),
        (np.array([2, 3]), [2, 3]),
        (range(3), [0, 1, 2]),
        ((1.0, "a"), [1.0, "a"]),
        (Path("a") / "b", "a/b"),
        ({"a": None, "b": {"c": 1}}, {"b": {"c": 1}}),
    ],
)
def test_values_become_plain_and_keep_their_type(value, expected):
    found = to_plain(value, "key")
    assert found == expected
    assert type(found) is type(expected)


def test_a_component_becomes_a_table_with_all_of_its_options():
    table = to_plain(FedAvg(k0=3, step=ConstantStep(a=0.5)), "algorithm")
    assert (table["name"], table["k0"], table["step"]) == ("fedavg", 3, {"name": "constant", "a": 0.5})
    assert Algorithm.build(table, "algorithm") == FedAvg(k0=3, step=ConstantStep(a=0.5))
    assert to_plain(FedAvg, "algorithm") == {"name": "fedavg"}


@pytest.mark.parametrize(
    ("value", "what"), [(print, "a builtin_function_or_method"), (1j, "a complex"), ({1}, "a set")]
)
def test_what_an_experiment_cannot_hold_is_refused(value, what):
    with pytest.raises(UserError, match=rf"^algorithm\.k0 = .* is wrong: a setting is .* and this is {what}$"):
        to_plain({"k0": value}, "algorithm")
    with pytest.raises(UserError, match=r"^data is an array: write data = mpifed\.arrays\(X, y, clients\)"):
        to_plain(np.zeros((3, 2)), "data")


def test_a_class_of_a_module_is_named_by_it_and_found_again():
    name = study_name(Harmonic)
    assert name == f"{__name__}:Harmonic"
    assert isinstance(Step.build({"name": name, "a": 2.0}, "step"), Harmonic)
    plugins.passed_classes.clear()
    assert issubclass(plugins.find_class(Step, name), Harmonic)


def test_a_class_of_a_file_is_named_by_the_file(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("from mpifed.algorithms.parts import Step\nclass Half(Step):\n    pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    half = importlib.import_module("mine").Half
    assert study_name(half) == f"{tmp_path}/mine.py:Half"
    monkeypatch.chdir(tmp_path)
    assert study_name(half) == "mine.py:Half"
    del sys.modules["mine"]


def local_step(name):
    """A class that only this program can name."""
    return type(name, (Step,), {"gamma": lambda self, k, k0, d: 1.0, "__qualname__": f"local_step.{name}"})


def test_a_class_that_nobody_else_can_name_is_found_in_this_program_alone():
    Local = local_step("Local")
    assert study_name(Local) == "__main__:Local"
    made = Step.build("__main__:Local", "algorithm.step")
    assert isinstance(made, Local)
    plugins.passed_classes.clear()
    assert study_name(type(made)) == "__main__:Local"
    assert isinstance(Step.build("__main__:Local", "algorithm.step"), Local)
    plugins.passed_classes.clear()
    sentence = r"Local was defined in a notebook, .* pass Local\(…\) to mpifed\.resume there$"
    with pytest.raises(UserError, match=sentence):
        Step.build("__main__:Local", "algorithm.step")
    study_name(local_step("Twin"))
    with pytest.raises(UserError, match="two classes or functions are called Twin"):
        study_name(local_step("Twin"))


def test_another_class_or_a_function_becomes_the_text_that_names_it():
    """A network in torch and its loss, for example."""

    class Net:
        pass

    def focal(scores, targets):
        return scores - targets

    assert to_plain({"module": Net, "loss": focal}, "problem") == {"module": "__main__:Net", "loss": "__main__:focal"}
    assert plugins.load_class("__main__:focal", "function", Callable) is focal
    assert to_plain([study_name, UserError], "key") == [
        "mpifed.core.objects:study_name",
        "mpifed.core.errors:UserError",
    ]
