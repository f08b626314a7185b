"""The server: verbs, rounds, what goes wrong on a host, what is charged to the ledger, and how narrow its seams are."""

from typing import ClassVar, get_origin, get_type_hints

import numpy as np
import pytest

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.algorithms.bases.graph_algorithm import GraphAlgorithm
from mpifed.core import signals
from mpifed.core.errors import RunError
from mpifed.federation.ledger import Ledger
from mpifed.federation.request import HostReport, Request
from mpifed.federation.transform import MessageCost
from tests.helpers.algorithm_runs import M, N, Run, build


def test_the_start_is_charged_to_no_ledger_and_a_round_is_and_selected_clients_are_counted():
    run = Run(build("fedgia"))
    assert set(vars(run.fed.ledger).values()) == {0}
    run.rounds(1)
    assert (run.fed.ledger.exchanges, run.fed.ledger.uploads) == (1, M)
    run.rounds(2)
    assert run.fed.times_selected.sum() == 3 * run.fed.clients_per_round
    assert np.array_equal(np.flatnonzero(run.fed.mask(run.fed.selected)), run.fed.selected)
    assert run.fed.mask(None).all()


def test_what_is_sent_twice_is_charged_twice():
    def charged(name, calls, *args):
        run = Run(build(name))
        run.fed.begin(1)
        for _ in range(calls):
            run.fed.mean(run.algorithm.update, *args)
        return run.fed.ledger.bytes_up, run.fed.ledger.bytes_down

    x = np.ones(N)
    up, down = charged("fedavg", 1, x, 0)
    assert charged("fedavg", 2, x, 0) == (2 * up, 2 * down)
    assert charged("scaffold", 1, x, x, 0) == (2 * up, 2 * down)  # tuples of two vectors, here the same one


def test_verbs_agree_with_the_rows_that_call_brings():
    run = Run(build("fedavg"), cuts=(0, 5, M))
    update, x, to = run.algorithm.update, np.ones(N), np.array([1, 4, 5, 11])
    run.fed.begin(1)
    rows = run.fed.call(update, x, 0, to=to)
    assert rows.shape == (4, N)
    assert run.fed.sum(update, x, 0, to=to) == pytest.approx(rows.sum(axis=0), rel=1e-12)
    assert run.fed.mean(update, x, 0, to=to) == pytest.approx(rows.mean(axis=0), rel=1e-12)
    assert np.array_equal(run.fed.max(update, x, 0, to=to), rows.max(axis=0))


@pytest.mark.parametrize("options", [{}, {"system": {"speed": 30, "jitter": 0.5}, "asynchronous": {}}], ids=str)
def test_numbers_that_are_not_finite_end_the_run_with_client_round_method_and_option(options):
    run = Run(build("fedavg", {"step": {"name": "constant", "a": 1e200}}), **options)
    told = r"of client \d+ is not finite in round \d, method update: .*look at algorithm\.step$"
    with np.errstate(all="ignore"), pytest.raises(RunError, match=told):
        run.rounds(50)


def test_the_stop_signal_is_that_of_the_server_or_of_a_host(monkeypatch):
    run = Run(build("fedavg"))
    assert run.fed.stop_signal == ""
    run.fed._transport.report = HostReport(signal=signals.HANDLED.index("SIGUSR1") + 1)
    assert run.fed.stop_signal == "SIGUSR1"
    monkeypatch.setattr(signals, "stop_signal", "SIGTERM")
    assert run.fed.stop_signal == "SIGTERM"


def test_arrays_are_charged_numbers_and_selections_not_and_bits_are_those_of_the_bytes_or_of_a_compressed_reply():
    ledger = Ledger()
    ledger.charge(Request("update", (np.zeros(5), 3, 0.1, np.arange(4))), 6, 40, MessageCost())
    assert (ledger.downloads, ledger.bytes_down, ledger.uploads, ledger.bytes_up) == (6, 6 * 40, 6, 6 * 40)
    assert ledger.exchanges == 1
    ledger.charge(Request("step", (0.5,)), 6, 0, MessageCost())
    assert ledger.exchanges == 1
    ledger.charge(Request("own", each=np.zeros((6, 3), np.float32)), 6, 0, MessageCost())
    assert (ledger.downloads, ledger.bytes_down) == (12, 6 * 40 + 6 * 3 * 4)
    assert ledger.exchanges == 2
    ledger = Ledger()
    ledger.charge(Request("update", (np.zeros(5),), each=np.zeros((6, 3))), 6, 40, MessageCost())
    assert (ledger.bits_up, ledger.bits_down) == (8 * ledger.bytes_up, 8 * ledger.bytes_down) == (8 * 240, 8 * 384)
    ledger.charge(Request("update"), 6, 40, MessageCost(masked_bytes=(1000, 70)))
    assert (ledger.bits_up, ledger.bits_down) == (8 * 1240, 8 * 454)
    ledger.charge(Request("update"), 6, 400, MessageCost(bits=33))
    assert (ledger.bits_up, ledger.bytes_up, ledger.uploads) == (8 * 1240 + 6 * 33, 1240 + 6 * 5, 18)
    ledger.charge(Request("update", (np.zeros(5),)), 2, 0, MessageCost(down=(17, 6)))  # sent to all six
    assert (ledger.bits_down, ledger.bytes_down, ledger.downloads) == (8 * 454 + 6 * 17, 454 + 6 * 3, 12)


TRAITS = ("requires", "participation", "mean_estimate", "upload", "asynchronous")
FAMILIES = (Algorithm, GraphAlgorithm)
METHODS = [Algorithm.member(name, "algorithm") for name in Algorithm.choices]


def test_requests_and_algorithms_have_few_fields_traits_and_methods():
    own = vars(Algorithm)
    hints = get_type_hints(Algorithm)
    traits = {key for key in own["__annotations__"] if get_origin(hints[key]) is ClassVar}
    methods = [name for name, value in own.items() if callable(value) and not name.startswith("_")]
    assert len(Request.__struct_fields__) <= 11
    assert len(traits - {"choices", "default", "kind"}) <= 11
    assert len(methods) <= 16


def test_no_method_says_otherwise_what_one_of_its_bases_has_said():
    families = {*FAMILIES, *(base for family in FAMILIES for base in family.__mro__)}
    classes = {cls for method in METHODS for cls in method.__mro__} - families
    again = [
        f"{cls.__name__}.{trait} is {base.__name__}'s already"
        for cls in classes
        for trait in TRAITS
        for base in cls.__mro__[1:]
        if trait in vars(cls) and base not in families and trait in vars(base)
    ]
    assert not again, "\n".join(sorted(again))
