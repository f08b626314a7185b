"""What a method does in its first rounds: how often it selects, whom it asks, what travels, what it needs."""

import inspect
from types import CodeType
from typing import Any, NamedTuple

import numpy as np

from mpifed.checking.case import Case
from mpifed.core.typing import Array
from mpifed.experiment.housing import federation
from mpifed.federation.host import Host
from mpifed.federation.method import Method
from mpifed.federation.request import FOR_THE_RECORD, SCORES, Reply, Request
from mpifed.federation.server import Federation
from mpifed.federation.transport import InProcess
from mpifed.problems.base import Problem

ROUNDS = 3
NEEDS = {name: name for name in Problem.offers} | {"packed_hess": "hess"}  # method -> the one that ``requires`` names


class Spy:
    """A problem that notes which of its methods ``names`` an algorithm calls, and in which of its own: need -> name."""

    def __init__(
        self, problem: Problem, algorithm: Method, called: dict[str, str], names: dict[str, str] = NEEDS
    ) -> None:
        self._problem = problem
        self._names = names
        self._codes = codes(type(algorithm))
        self._called = called

    def __getattr__(self, name: str) -> Any:
        if name in self._names and self._names[name] not in self._called:
            self._called[self._names[name]] = self.caller()
        return getattr(self._problem, name)

    def caller(self) -> str:
        frame = inspect.currentframe()
        while frame is not None and frame.f_code not in self._codes:
            frame = frame.f_back
        return "round" if frame is None else self._codes[frame.f_code]


def codes(cls: type) -> dict[CodeType, str]:
    """The names of the methods of a class, its bases included, by their code."""
    methods = [(name, inspect.unwrap(method)) for base in cls.__mro__ for name, method in vars(base).items()]
    return {method.__code__: name for name, method in methods if inspect.isfunction(method)}


class Watching(InProcess):
    """A transport to the host in this process that notes to whom real numbers go, and who sends some."""

    def __init__(self, host: Host) -> None:
        super().__init__(host)
        self.asked: list[Request] = []

    def send(self, request: Request) -> Reply:
        reply = super().send(request)
        told = any(isinstance(value, np.ndarray) and value.dtype.kind == "f" for value in (*request.args, request.each))
        travels = told or reply.rows.size > 0
        if travels and request.verb not in FOR_THE_RECORD and request.method not in SCORES:
            self.asked.append(request)
        return reply


class Round(NamedTuple):
    """A round: its selections, each a mask (m,), the clients asked (m,), by which methods, and the numbers sent up."""

    selections: list[Array]
    asked: Array
    methods: tuple[str, ...]
    up: float


class Trace(NamedTuple):
    """The first rounds of a method; ``sizes`` of the server's state.

    ``called``: the methods of the problem that it called, and in which of its own it did so first.
    """

    fed: Federation
    rounds: list[Round]
    called: dict[str, str]
    sizes: list[dict[str, int]]


def traced(case: Case, rounds: int = ROUNDS) -> Trace:
    """Watch a method from its start."""
    config = case.config
    parts = case.prepared
    host = parts.host
    assert host is not None
    called: dict[str, str] = {}
    host.setup = host.setup._replace(problem=Spy(parts.setup.problem, config.algorithm, called))  # type: ignore[arg-type]
    host.join()
    transport = Watching(host)
    fed = federation(config, transport, parts)
    drawn = selections(fed)
    algorithm: Any = config.algorithm
    fed.begin(0)
    server = algorithm.start(fed)
    found = []
    sizes = []
    for number in range(1, rounds + 1):
        before = fed.ledger.bytes_up
        transport.asked.clear()
        drawn.clear()
        fed.begin(number)
        server = fed.observed(algorithm.round(fed, server))
        asked = np.zeros(fed.m, bool)
        for request in transport.asked:
            asked |= fed.mask(request.to)
        up = (fed.ledger.bytes_up - before) / fed.dtype.itemsize
        methods = tuple(dict.fromkeys(request.method for request in transport.asked))
        found.append(Round(list(drawn), asked, methods, up))
        fed.evaluate(server.x)  # what the method records may need more of the problem
        sizes.append({name: np.size(value) for name, value in zip(server._fields, server, strict=True)})
    return Trace(fed, found, called, sizes)


def selections(fed: Federation) -> list[Array]:
    """A list to which every selection of a federation adds its mask (m,) from here on."""
    drawn: list[Array] = []
    select = fed.select

    def selected(*args: Any, **named: Any) -> Array | None:
        found = select(*args, **named)
        drawn.append(fed.mask(found))
        return found

    setattr(fed, "select", selected)  # noqa: B010 - of this federation alone
    return drawn
