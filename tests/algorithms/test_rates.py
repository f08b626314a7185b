"""Rates: every step size and learning rate of every method takes a number or a schedule, by round or by local step."""

from functools import partial

import numpy as np
import pytest
from msgspec.structs import fields, replace

import mpifed
from mpifed import steps
from mpifed.algorithms import FedBuff
from mpifed.algorithms.parts import Server, Step, rate_at
from mpifed.core.component import Component, analyse_type
from mpifed.federation.method import find_method
from mpifed.sweeps.search import Range, default_axes
from tests.helpers.algorithm_cases import CASES, GRAPH_CASES, PROBLEMS
from tests.helpers.algorithm_runs import Run, build, gradients, same

FIRST = {case[0]: case for case in [*GRAPH_CASES, *((*case, None) for case in reversed(CASES))]}
SOLVERS = [("feddcd", {"solver": {"name": name, "batch_size": 0}}, None) for name in ("sgd", "adam", "svrg")]
SERVERS = [("fedopt", {"server": name}, None) for name in ("momentum", "adagrad", "adam", "yogi")]
CURVED = {"name": "softmax", "lam": 0.1, "bias": False}  # Hessians that change
TAKEN = PROBLEMS | {"fednl": CURVED, "fednl-pp": CURVED}
PENALTIES = {"ad-admm", "fedadmm", "fedadmm-insa", "fedepm", "fedepm-graph", "fedgia", "fedgia-async", "fedgia-graph"}
SEARCHES = {"fednew", "lbfgs", "newton", "sisa"}


def rates(component, path=()):
    """Path of every rate of a component and its parts, and whether its numbers stay numbers."""
    for field in fields(type(component)):
        value, types = getattr(component, field.name), analyse_type(field.type)[2]
        if Step in types:
            yield (*path, field.name), float in types
        elif isinstance(value, Component):
            yield from rates(value, (*path, field.name))


def changed(component, path, value):
    """The component with another value at a path."""
    key, *rest = path
    return replace(component, **{key: changed(getattr(component, key), rest, value) if rest else value})


BUILT = [(build(*case[:2]), case[2]) for case in [*FIRST.values(), *SOLVERS, *SERVERS]]
RATES = [(*case, *rate) for case in BUILT for rate in rates(case[0])]
NAMES = [f"{algorithm.label()}-{'.'.join(path)}-{k}" for k, (algorithm, _, path, _) in enumerate(RATES)]


def after(algorithm, graph, count):
    run = Run(algorithm, TAKEN.get(algorithm.label(), "least-squares"), graph=graph)
    run.rounds(count)
    return run


def state(run):
    return [*map(np.asarray, run.server), *run.states()]


def test_all_methods_have_rates_but_those_with_penalties_or_line_searches():
    assert {*FIRST} - {algorithm.label() for algorithm, *_ in RATES} == PENALTIES | SEARCHES


@pytest.mark.parametrize(("algorithm", "graph", "path", "number"), RATES, ids=NAMES)
def test_a_schedule_has_the_bits_of_one_number_after_the_other(algorithm, graph, path, number):
    """Two rounds with 0.01, then two with half of it: a constant rule, a schedule, and methods that know numbers."""
    one, half = (changed(algorithm, path, a if number else steps.ConstantStep(a=a)) for a in (0.01, 0.005))
    pieces = after(one, graph, 2)
    assert same(state(pieces), state(after(changed(algorithm, path, steps.ConstantStep(a=0.01)), graph, 2)))
    scheduled = after(changed(algorithm, path, steps.StepDecay(a=0.01, decay=0.5, every=2)), graph, 2)
    assert same(state(pieces), state(scheduled))
    pieces.algorithm = half
    for host in pieces.hosts:
        host.setup, host.find_method = host.setup._replace(algorithm=half), partial(find_method, half)
    assert same(pieces.rounds(2), scheduled.rounds(2))
    assert same(pieces.states(), scheduled.states())
    assert not same(state(after(one, graph, 4)), state(pieces))


COSINE = {"name": "cosine", "a": 0.05, "least": 0.01, "over": 7, "by": "step"}
WARM = {"name": "warmup", "over": 4, "then": {"name": "inverse", "a": 0.6}}


def cosine(t):
    return 0.01 + 0.02 * (1 + np.cos(np.pi * min(1, t / 7)))


def warm(r):
    return 0.6 * (1 / 3 + r / 6) if r < 4 else 0.6 / (1 + r - 4)


def local(run, r, w, x=0.0, pull=0.0):
    """Three gradient steps of all clients in round r = 0, 1 …"""
    for k in range(3 * r, 3 * r + 3):
        w = w - cosine(k) * (gradients(run, w) + pull * (w - x))
    return w


def sgd(run, r, x, memory):
    return local(run, r, x).mean(0), memory


def momentum(run, r, x, u):
    u = 0.9 * u + local(run, r, x).mean(0) - x
    return x + warm(r) * u[0], u


def scaffold(run, r, x, c):
    y = x
    for k in range(3 * r, 3 * r + 3):
        y = y - cosine(k) * (gradients(run, y) - c + c.mean(0))
    total = sum(map(cosine, range(3 * r, 3 * r + 3)))
    return x + warm(r) * (y - x).mean(0), c - c.mean(0) + (x - y) / total


def pfedme(run, r, x, theta):
    theta = local(run, r, theta, x, 2.0)
    return (x - warm(r) * 2.0 * (x - theta)).mean(0), theta


def ditto(run, r, x, theta):
    return local(run, r, x).mean(0), local(run, r, theta, x, 2.0)


STEPS, OWN = {"k0": 3, "step": COSINE}, {"lr": COSINE, "lam": 2.0}
LOOPS = [
    ("fedavg", STEPS, sgd, None),
    ("local-gd", {"k0": 3, "gamma": COSINE}, sgd, None),
    ("fedopt", STEPS | {"server": {"name": "momentum", "lr": WARM}}, momentum, None),
    ("scaffold", STEPS | {"server_lr": WARM}, scaffold, "c"),
    ("pfedme", OWN | {"epochs": 3, "batch_size": 0, "eta": WARM}, pfedme, "theta"),
    ("ditto", STEPS | OWN | {"inner": 3}, ditto, "theta"),
]


@pytest.mark.parametrize(("name", "options", "loop", "field"), LOOPS, ids=[row[0] for row in LOOPS])
def test_a_method_with_schedules_is_the_loop_written_out(name, options, loop, field):
    run = Run(build(name, options), selection=mpifed.selections.UniformSelection(share=1.0))
    x, memory = run.server.x, getattr(run.states(), field) if field else np.zeros((run.m, run.n))
    for r, model in enumerate(run.rounds(6)):
        x, memory = loop(run, r, x, memory)
        np.testing.assert_allclose(model, x, rtol=0, atol=1e-12)
    if field:
        np.testing.assert_allclose(getattr(run.states(), field), memory, rtol=0, atol=1e-12)


class Sent(FedBuff):
    """FedBuff whose server sends the rate of the round with its model."""

    def round(self, fed, server):
        fed.send(self.descend, server.x, rate_at(self.lr, fed), to=fed.select(server.x))
        return Server(server.x + fed.mean(of=fed.arrivals()))

    def descend(self, f, client, x, lr):
        return replace(self, lr=lr).update(f, client, x)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_an_asynchronous_client_takes_the_rate_of_the_round_in_which_it_was_sent_its_model(dtype):
    away = {"system": {"speed": {"name": "lognormal", "median": 100}}, "asynchronous": {"arrivals": 2}, "dtype": dtype}
    one, other = (Run(rule(lr=steps.Inverse(a=0.1), a=0.0), **away) for rule in (Sent, FedBuff))
    assert same(one.rounds(12), other.rounds(12))
    assert other.fed.staleness.max() > 1


def test_a_schedule_is_kept_in_files_goes_on_after_a_stop_and_is_tuned_by_its_factor_without_any_bound(tmp_path):
    study = {"algorithm": {"name": "gd", "gamma": COSINE, "certify": True}, "data": {"clients": 5}, "kernels": "numpy"}
    result = mpifed.run(study, path=tmp_path / "out.h5", rounds=3)
    assert "it is about a constant rate, and algorithm.gamma follows a schedule" in str(result.certificate)
    assert result.config["algorithm"]["gamma"] == COSINE
    more, full = mpifed.resume(tmp_path / "out.h5", {"rounds": 6}), mpifed.run(study, rounds=6)
    assert same([more.x], [full.x])
    assert default_axes({"name": "gd", "gamma": COSINE}) == {"gamma.a": Range(5e-4, 5.0)}
