"""A trace of the first rounds of a method: its selections, the clients it asks, messages, and what it requires."""

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from mpifed.checking.case import Case
from mpifed.core.typing import Array
from mpifed.experiment.housing import build_federation
from mpifed.experiment.rounds import play_round
from mpifed.federation.gradient_counter import GradientCounter
from mpifed.federation.host import Host
from mpifed.federation.method import ServerState, wrap_methods
from mpifed.federation.request import FOR_THE_RECORD, SCORES, Reply, Request, is_charged
from mpifed.federation.server import Federation
from mpifed.federation.transport import InProcess
from mpifed.problems.problem import Problem

ROUNDS = 3
NEEDS = {name: name for name in Problem.offers} | {"packed_hess": "hess"}  # method -> its name in ``requires``


class CallRecorder:
    """A profile function (sys.setprofile) that notes selections, and the methods of the problem with their callers.

    Problem and federation are those of any run, and their calls are not redirected.
    """

    def __init__(self, case: Case, fed: Federation, names: dict[str, str] = NEEDS) -> None:
        self.fed = fed
        self.names = names  # method of a problem -> requirement
        self.method = method_codes(type(case.config.algorithm))
        self.problem = method_codes(type(case.config.problem)) | method_codes(type(case.spec.setup.problem))
        self.select = type(fed).select.__code__
        self.callers: dict[str, str] = {}
        self.selections: list[Array] = []
        self.repeats = np.zeros(fed.m)

    def __call__(self, frame: FrameType, event: str, value: Any) -> None:
        need = self.names.get(self.problem.get(frame.f_code, ""), "")
        if event == "call" and need and need not in self.callers and (caller := self.caller(frame.f_back)):
            self.callers[need] = caller
        if event == "return" and frame.f_code is self.select:
            # not ``value``, which is None where a round ends because nobody is selected
            selected = self.fed.mask(self.fed.selected)
            self.selections.append(selected)
            self.repeats += selected * frame.f_locals["repeats"]

    def begin(self, always: bool) -> None:
        """Begin a round; all clients are charged in it if ``always``, for methods that select none."""
        self.selections = []
        self.repeats = np.full(self.fed.m, float(always))

    def caller(self, frame: FrameType | None) -> str:
        """Return the method of the algorithm that makes a call, by default ``round``; "" if the problem makes it."""
        while frame is not None and frame.f_code not in self.method:
            # a problem may build one of its methods from others, which is no requirement of the algorithm
            if frame.f_code in self.problem:
                return ""
            frame = frame.f_back
        return "round" if frame is None else self.method[frame.f_code]


@contextmanager
def profiling(watch: CallRecorder) -> Iterator[None]:
    """Profile all calls in the block with ``watch``."""
    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        yield
    finally:
        sys.setprofile(before)


def method_codes(cls: type) -> dict[CodeType, str]:
    """Map the code of each method of a class, bases included, to its name."""
    # unwrapped, because the guards around the methods of a user's class all have the same code
    methods = [(name, inspect.unwrap(method)) for base in cls.__mro__ for name, method in vars(base).items()]
    return {method.__code__: name for name, method in methods if inspect.isfunction(method)}


class RecordingTransport(InProcess):
    """A transport to the host in this process that records the requests that send or return real numbers."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.asked: list[Request] = []

    def send(self, request: Request) -> Reply:
        reply = super().send(request)
        # rounds, seeds and counts go to every client: only arrays of real numbers show that a client takes part
        sends_numbers = any(is_charged(value) for value in (*request.args, request.each))
        has_numbers = sends_numbers or reply.rows.size > 0
        if has_numbers and request.request_type not in FOR_THE_RECORD and request.method not in SCORES:
            self.asked.append(request)
        return reply


class RoundTrace(NamedTuple):
    """A traced round: selections, each a mask (m,), the clients asked (m,), the client methods, and the numbers sent.

    ``repeats`` (m,): how many times ``sample_gradients`` each client is charged; ``gradients`` (m,): the sample
    gradients it computed.
    """

    selections: list[Array]
    asked: Array
    methods: tuple[str, ...]
    down: float
    up: float
    repeats: Array
    gradients: Array


class Trace(NamedTuple):
    """The first rounds of a method; ``sizes``: those of the fields of the state of the server.

    ``callers``: method of the problem -> the method of the algorithm that called it first; ``second``: the second
    derivatives among them.
    """

    fed: Federation
    rounds: list[RoundTrace]
    callers: dict[str, str]
    sizes: list[dict[str, int]]
    second: tuple[str, ...]


def trace_rounds(case: Case, rounds: int = ROUNDS) -> Trace:
    """Trace a method from its start."""
    config = case.config
    transport = RecordingTransport(case.host)
    fed = build_federation(config, transport, case.spec)
    watch = CallRecorder(case, fed)
    server: ServerState | None = None
    traces = []
    sizes = []
    tally = GradientCounter(fed.m)
    with profiling(watch), count_gradients(case.host, tally):
        case.host.join()  # once more, because join may be the only place that calls a method of the problem
        for number in range(rounds + 1):
            before = fed.ledger.bytes_down, fed.ledger.bytes_up
            transport.asked.clear()
            watch.begin(not config.algorithm.participation.selections)
            tally.clear()
            server, _ = play_round(config.algorithm, fed, number, server, 0)
            server = fed.transform_state(server)
            if number:
                traces.append(summarise_round(watch, transport.asked, tally.clear(), before))
                fed.evaluate(server.x)  # the record of the method may call further methods of the problem
                sizes.append({name: np.size(value) for name, value in server._asdict().items()})
    return Trace(fed, traces, watch.callers, sizes, tuple(tally.second))


@contextmanager
def count_gradients(host: Host, tally: GradientCounter) -> Iterator[None]:
    find = host.find_method
    host.find_method = wrap_methods(find, tally.wrap)
    try:
        yield
    finally:
        host.find_method = find


def summarise_round(
    watch: CallRecorder, requests: list[Request], gradients: Array, before: tuple[int, int]
) -> RoundTrace:
    """Summarise a round from the requests; ``before``: bytes sent down and up until it began."""
    fed = watch.fed
    asked = np.zeros(fed.m, bool)
    for request in requests:
        asked |= fed.mask(request.to)
    down, up = (
        (now - then) / fed.dtype.itemsize
        for now, then in zip((fed.ledger.bytes_down, fed.ledger.bytes_up), before, strict=True)
    )
    methods = tuple(dict.fromkeys(request.method for request in requests))
    return RoundTrace(watch.selections, asked, methods, down, up, watch.repeats, gradients)
