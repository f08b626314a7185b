"""What a method does in its first rounds: how often it selects, whom it asks, what travels, what it needs."""

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any, NamedTuple

import numpy as np

from mpifed.checking.case import Case
from mpifed.core.typing import Array
from mpifed.experiment.housing import federation
from mpifed.experiment.rounds import played
from mpifed.federation.counted import Tally
from mpifed.federation.host import Host
from mpifed.federation.method import ServerState
from mpifed.federation.request import FOR_THE_RECORD, SCORES, Reply, Request, is_charged
from mpifed.federation.server import Federation
from mpifed.federation.transport import InProcess
from mpifed.problems.problem import Problem

ROUNDS = 3
NEEDS = {name: name for name in Problem.offers} | {"packed_hess": "hess"}  # method -> the one that ``requires`` names


class Watch:
    """What a function of sys.setprofile sees of a run: needs of the problem, as need -> method, and selections.

    Watched from outside, problem and federation are those of any run, and no call of theirs takes another way.
    """

    def __init__(self, case: Case, fed: Federation, names: dict[str, str] = NEEDS) -> None:
        self.fed = fed
        self.names = names  # method of a problem -> need
        self.method = codes(type(case.config.algorithm))
        self.problem = codes(type(case.config.problem)) | codes(type(case.prepared.setup.problem))
        self.select = type(fed).select.__code__
        self.called: dict[str, str] = {}
        self.selections: list[Array] = []
        self.units = np.zeros(fed.m)

    def __call__(self, frame: FrameType, event: str, found: Any) -> None:
        need = self.names.get(self.problem.get(frame.f_code, ""), "")
        if event == "call" and need and need not in self.called and (caller := self.caller(frame.f_back)):
            self.called[need] = caller
        if event == "return" and frame.f_code is self.select:
            chosen = self.fed.mask(found)
            self.selections.append(chosen)
            self.units += chosen * frame.f_locals["units"]

    def begin(self, always: bool) -> None:
        """Begin a round, in which all clients are charged where no selection is made."""
        self.selections = []
        self.units = np.full(self.fed.m, float(always))

    def caller(self, frame: FrameType | None) -> str:
        """The method of the algorithm from which a call comes, ``round`` where it is none; empty: from the problem."""
        while frame is not None and frame.f_code not in self.method:
            # a problem may build one of its methods from others, which is no need of the algorithm
            if frame.f_code in self.problem:
                return ""
            frame = frame.f_back
        return "round" if frame is None else self.method[frame.f_code]


@contextmanager
def watching(watch: Watch) -> Iterator[None]:
    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        yield
    finally:
        sys.setprofile(before)


def codes(cls: type) -> dict[CodeType, str]:
    """The names of the methods of a class, its bases included, by their code."""
    # unwrapped: around the methods of a user's own class stand guards, which all have one code
    methods = [(name, inspect.unwrap(method)) for base in cls.__mro__ for name, method in vars(base).items()]
    return {method.__code__: name for name, method in methods if inspect.isfunction(method)}


class Watching(InProcess):
    """A transport to the host in this process that notes to whom real numbers go, and who sends some."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.asked: list[Request] = []

    def send(self, request: Request) -> Reply:
        reply = super().send(request)
        # numbers of rounds, seeds and counts go to every client: only arrays of real numbers say that it takes part
        told = any(is_charged(value) for value in (*request.args, request.each))
        travels = told or reply.rows.size > 0
        if travels and request.verb not in FOR_THE_RECORD and request.method not in SCORES:
            self.asked.append(request)
        return reply


class Round(NamedTuple):
    """A round: its selections, each a mask (m,), the clients asked (m,), by which methods, and the numbers sent.

    ``units`` (m,): how many times ``work`` each client is charged with, ``gradients`` (m,) those of samples that it has
    computed.
    """

    selections: list[Array]
    asked: Array
    methods: tuple[str, ...]
    down: float
    up: float
    units: Array
    gradients: Array


class Trace(NamedTuple):
    """The first rounds of a method; ``sizes`` of the server's state.

    ``called``: the methods of the problem that it called, and in which of its own it did so first; ``second``: second
    derivatives among them.
    """

    fed: Federation
    rounds: list[Round]
    called: dict[str, str]
    sizes: list[dict[str, int]]
    second: tuple[str, ...]


def traced(case: Case, rounds: int = ROUNDS) -> Trace:
    """Watch a method from its start."""
    config = case.config
    transport = Watching(case.host)
    fed = federation(config, transport, case.prepared)
    watch = Watch(case, fed)
    server: ServerState | None = None
    found = []
    sizes = []
    tally = Tally(fed.m)
    with watching(watch), counting(case.host, tally):
        case.host.join()  # once more: what a method needs of the problem may be asked for here alone
        for number in range(rounds + 1):
            before = fed.ledger.bytes_down, fed.ledger.bytes_up
            transport.asked.clear()
            watch.begin(not config.algorithm.takes.selections)
            tally.clear()
            server, _ = played(config.algorithm, fed, number, server, 0)
            server = fed.observed(server)
            if number:
                found.append(seen(watch, transport.asked, tally.clear(), before))
                fed.evaluate(server.x)  # what the method records may need more of the problem
                sizes.append({name: np.size(value) for name, value in server._asdict().items()})
    return Trace(fed, found, watch.called, sizes, tuple(tally.second))


@contextmanager
def counting(host: Host, tally: Tally) -> Iterator[None]:
    host.wraps.append(tally.wrap)
    try:
        yield
    finally:
        host.wraps.remove(tally.wrap)


def seen(watch: Watch, requests: list[Request], gradients: Array, before: tuple[int, int]) -> Round:
    """What a round did, with ``before`` bytes sent down and up until then."""
    fed = watch.fed
    asked = np.zeros(fed.m, bool)
    for request in requests:
        asked |= fed.mask(request.to)
    down, up = (
        (now - then) / fed.dtype.itemsize
        for now, then in zip((fed.ledger.bytes_down, fed.ledger.bytes_up), before, strict=True)
    )
    methods = tuple(dict.fromkeys(request.method for request in requests))
    return Round(watch.selections, asked, methods, down, up, watch.units, gradients)
