"""Which studies have their local steps in one launch on a GPU. What these compute is tested in tests/data/cuda."""

import pytest

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.algorithms.fedavg import FedAvg
from mpifed.algorithms.launched.choice import KINDS, SOLVING, launched
from tests.helpers.algorithm_runs import build

FULL = {"batch_size": 0}
SUITED = {  # what a method needs beside its defaults
    "dgd": {"order": "adapt-combine"},
    "fedadmm-deep": FULL,
    "flame": FULL,
    "pfedme": FULL,
}
NAMES = [kind.label() for kind in KINDS]
OTHERS = [  # local steps of other kinds
    {"batch_size": 10},
    {"optimizer": "adam"},
    {"optimizer": {"name": "sgd", "clip": 1.0}},
    {"weight_decay": 0.1},
]
OWN = {name: {*Algorithm.member(name, "algorithm").__struct_fields__} for name in NAMES}
CASES = [(name, other) for name in NAMES for other in OTHERS if other.keys() <= OWN[name]]


@pytest.mark.parametrize("name", NAMES)
def test_a_method_keeps_its_options_and_all_but_its_loop(name):
    method = build(name, SUITED.get(name, {}))
    found = launched(method)
    assert isinstance(found, type(method))
    assert all(getattr(found, key) == getattr(method, key) for key in method.__struct_fields__)
    assert (found.label(), found.upload, found.mean) == (name, method.upload, method.mean)
    assert type(found).round is type(method).round


@pytest.mark.parametrize(("name", "other"), [(name, other) for name, other in CASES if name != "fednova"])
def test_mini_batches_other_optimisers_and_clipped_gradients_are_left_to_single_steps(name, other):
    assert launched(build(name, SUITED.get(name, {}) | other)) is None


@pytest.mark.parametrize("other", [{"batch_size": 10}, {"optimizer": "momentum"}])
def test_so_are_those_of_fednova_which_refuses_further_optimisers(other):
    assert launched(build("fednova", other)) is None


@pytest.mark.parametrize("name", sorted(set(Algorithm.choices) - set(NAMES)))
def test_methods_with_other_local_steps_have_none(name):
    assert launched(build(name)) is None


@pytest.mark.parametrize("name", [kind.label() for kind in SOLVING])
def test_a_solver_by_gradient_steps_on_all_samples_is_replaced_and_others_are_not(name):
    solvers = [{"name": "gd", "steps": 2}, {"name": "gd", "delta": 0.1}, {"name": "sgd", "batch_size": 0, "steps": 7}]
    for solver in solvers:
        method = build(name, {"solver": solver})
        found = launched(method)
        assert type(found) is type(method)
        assert isinstance(found.solver, type(method.solver))
        assert found.solver != method.solver
    for solver in ("newton", "sgd", "svrg", "adam", {"name": "sgd", "batch_size": 0, "clip": 1.0}):
        assert launched(build(name, {"solver": solver})) is None


class Own(FedAvg, tag="own-fedavg"):
    def iterate(self, f, w, x, gamma, memory):
        return w - 2 * gamma * f.grad(w), memory


def test_a_class_of_a_users_own_takes_its_own_steps():
    assert launched(Own()) is None
