"""The server that a method's round calls: it selects clients, calls them, evaluates them and saves their state."""

import os
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mpifed.core import signals
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.federation.calls import ClientCaller
from mpifed.federation.evaluation import Evaluation, EvaluationResult
from mpifed.federation.ids import parse_client_argument
from mpifed.federation.method import ClientMethod, ServerState
from mpifed.federation.participation.selection import EmptyRound, Selector, find_untaken
from mpifed.federation.request import EVALUATE, EVALUATE_MAXIMA, EVALUATE_SUMS, SAVE, SERVICE, Request
from mpifed.federation.schedule import Schedule
from mpifed.federation.setup import RunSpec
from mpifed.federation.transform import AnyTransform, ServerTransform, Transform, export_states, restore_states
from mpifed.federation.transport import Transport

UNIFORM_PART = 2  # key of the random stream of a selection's uniform part


class Federation(ClientCaller):
    """The server of a run, with m clients behind a transport.

    It has ``m`` clients, ``n`` parameters and ``samples``. ``clients_per_round`` is the number of clients that a round
    selects, ``selected`` are those selected last (None: all), ``dtype`` is that of models and messages. Sums have the
    same bits on any number of ranks, unless ``reproducible`` is false.

        >>> class Listening(mpifed.algorithms.FedAvg, tag="listening"):
        ...     def round(self, fed: mpifed.extend.Federation, server):
        ...         assert fed.m == 128 and server.x.shape == (fed.n,)
        ...         return super().round(fed, server)
        >>> mpifed.run(algorithm=Listening(), rounds=2).cr
        2
    """

    is_playing = False  # whether a method's round, or start, is under way
    plays_empty_rounds = False  # whether methods play rounds in which nobody is selected
    skipped_round = -1  # the last round that ended because nobody was selected

    def __init__(
        self,
        transport: Transport,
        setup: RunSpec,
        selector: Selector,
        sizes: Array,
        schedule: Schedule | None = None,
        reproducible: bool = True,
    ) -> None:
        super().__init__(transport, setup, schedule, reproducible)
        self.problem, self.n = setup.problem, len(setup.start)
        self.samples, self.clients_per_round = np.sum(sizes).item(), selector.size
        self.evaluation = Evaluation(setup)
        self.server_transforms: list[ServerTransform] = []
        self.participants = ActiveSelector(selector, setup)
        self._draw = make_draw(self, self.participants)
        self._rng: np.random.Generator | None = None

    def add_transform(self, transform: AnyTransform) -> None:
        """Add a transform of messages, or one of the server's state, after others; those of f are for hosts."""
        match transform:
            case ServerTransform():
                self.server_transforms.append(transform)
            case Transform():
                self.transforms.append(transform)

    def begin(self, round: int) -> None:
        """Begin round 0, the start, which is charged to no ledger, or round 1, 2 …"""
        self.participants.learn(self.inspect)
        self.round = round
        self.calls = 0
        self._rng = None
        self.slowest = self.computing = self.mpi = 0.0
        self.schedule.begin(round)

    @property
    def rng(self) -> np.random.Generator:
        """Random stream of the server for this round; each use continues it."""
        if self._rng is None:
            self._rng = stream(self.setup.seed, "server", self.round)
        return self._rng

    def initial(self) -> Array:
        """Return the model (n,) that the run starts from: 0, except for networks."""
        return self.setup.start.copy()

    def select(self, x: Array, repeats: int = 1, extra: tuple[Any, ...] = ()) -> Array | None:
        """Return the clients selected for this round, rising, or None for all; a second call selects anew.

        A selection by scores sends the model x to candidates, which reply with one number; ``extra`` are further
        numbers for ``score_dual_move`` of the algorithm. With a table [system], return the selected clients that
        reply; they do ``repeats`` times the ``sample_gradients`` of the algorithm. In an asynchronous run, return the
        clients that are not under way: all in round 1, then those that arrived last. EmptyRound ends a round of nobody.
        """
        selected = self.schedule.select(lambda again: self._draw(again, x, extra), repeats)
        return selected if selected is None or len(selected) else self.skip_round(selected)

    def skip_round(self, nobody: Array) -> Array:
        """Raise EmptyRound where each client is drawn by itself; return ``nobody`` where methods play such rounds."""
        if self.participants.selector.varies and not self.plays_empty_rounds:
            self.skipped_round = self.round
            raise EmptyRound
        return nobody

    @property
    def free(self) -> Array | None:
        """Clients that are not under way, rising, or None for all: without [asynchronous] always all."""
        return self.schedule.free

    def drop(self, age: int = 0) -> None:
        """Discard the work that clients of an asynchronous run began at least ``age`` rounds ago; they are free again.

        Their downloads are charged, their uploads never travel.
        """
        self.schedule.drop(age)

    def estimate(self, around: Any, of: Array | None, last: str | None = None) -> Any:
        """Estimate the mean of the uploads over all clients from those of the selected clients ``of``.

        Under a selection with unequal probabilities p_i uploads have the weight 1/(m p_i) about the point ``around``,
        each part of a tuple about its own: around + mean of (upload − around)/(m p_i), whose expectation is the mean
        over all clients. Otherwise, and with ``last``, return ``mean(of=of, last=last)``.
        """
        weights = self.participants.selector.weights
        if weights is None or of is None or last is not None:
            return self.mean(of=of, last=last)
        # about the point ``around``, errors of the weights cancel if all uploads are alike, as near an optimum
        selected = weights[of]
        return center_weighted_mean(self.mean(of=of, weights=selected), 1.0 - float(selected.mean()), around)

    @property
    def local_steps(self) -> Array | None:
        """Local steps of each client selected last, ``max_steps`` of f.steps: (c,), passed as ``each``; None: all."""
        return self.schedule.steps

    def fraction(self, clients: Array | None) -> float:
        """Return the fraction that some clients (None: all) are of all; what is expected, where noise hides them."""
        if clients is None:
            return 1.0
        if self.plays_empty_rounds and (expected := self.participants.selector.probability) is not None:
            return expected  # how many there are would tell of a client
        weights = self.setup.client_weights
        return (len(clients) if weights is None else float(weights[clients].sum())) / self.m

    def mask(self, selected: Array | None) -> Array:
        """Return the selected clients (None: all) as a mask (m,) bool."""
        mask = np.full(self.m, selected is None)
        if selected is not None:
            is_own = selected is self.schedule.selected
            mask[selected if is_own else parse_client_argument(selected, self.m, "the array that fed.mask gets")] = True
        return mask

    def transform_state(self, server: ServerState) -> ServerState:
        """Return the server's state with the model to record in its field x; after a skipped round, as it is."""
        for transform in () if self.round == self.skipped_round else self.server_transforms:
            server = transform.transform_state(server)
        return server

    def evaluate(self, x: Array) -> EvaluationResult:
        """Return sums and maxima over all clients of the evaluation at x; it is charged to no ledger."""
        columns: dict[str, Array] = self._ask(Request(EVALUATE_SUMS, (x,), reduce=self._sum, request_type=EVALUATE))
        sums = {name: value for name, value in columns.items() if np.size(value)}
        maxima: dict[str, Array] = {}
        # empty arrays stand for maxima, which need a request of their own where there are any
        if len(sums) < len(columns):
            maxima = self._ask(Request(EVALUATE_MAXIMA, (x,), reduce="max", request_type=EVALUATE))
        for transform in self.server_transforms:
            sums = transform.transform_sums(x, sums)
        return EvaluationResult(sums, maxima)

    def inspect(self, method: ClientMethod, reduce: str = "rows", args: tuple[Any, ...] = ()) -> Any:
        """Return the replies of all clients to method(f, client, *args), as rows, "sum" or "max"; not charged."""
        reduce = self._sum if reduce == "sum" else reduce
        return self._ask(Request(method.__name__, args, reduce=reduce, request_type=EVALUATE))

    def call_service(self, service: str, reduce: str, args: tuple[Any, ...] = ()) -> Any:
        """Return the replies of a service of the hosts; they are charged to no ledger."""
        return self._ask(Request(service, args, reduce=reduce, request_type=SERVICE))

    def save(self, serial: int) -> None:
        """Have all hosts write the state of their clients; raise OSError if a disk refuses."""
        code = int(self._ask(Request("save", (serial,), reduce="max", request_type=SAVE)))
        if code:
            raise OSError(code, os.strerror(code))

    def export_state(self) -> dict[str, Array]:
        """Return arrays of transforms and schedule for a checkpoint, with a blank in their names."""
        return self.schedule.export_state() | export_states(self.transforms, "server")

    def restore(self, seconds: float, under_way: str, arrays: dict[str, Array]) -> None:
        """Restore the state from the arrays of a checkpoint that ``export_state`` returned."""
        self.schedule.restore(seconds, under_way, arrays)
        restore_states(self.transforms, "server", arrays)

    @property
    def stop_signal(self) -> str:
        """Name of the signal to end the run that the server or a host received; empty if none."""
        number = int(self._transport.report.signal)
        return signals.stop_signal or (signals.signal_name(number) if number else "")


class ActiveSelector:
    """The selector of a run, with what it has learned of the clients."""

    def __init__(self, selector: Selector, setup: RunSpec) -> None:
        self.selector, self.setup = selector, setup

    def learn(self, inspect: Callable[..., Any]) -> None:
        """Ask all clients, once, for the numbers that the selection needs; ``inspect`` charges them to no ledger."""
        if self.selector.learn is not None:
            self.selector = self.selector.learn(inspect(self.setup.algorithm.importance))

    def select(self, server: ClientCaller, again: int, x: Array, given: tuple[Any, ...]) -> Array:
        """Select clients by scores, rising; candidates get x and the numbers ``given``.

        These are the ``size`` candidates with the largest scores; ``uniform`` of them are drawn from the rest instead.
        """
        selector, round = self.selector, server.round
        present = server.schedule.present
        pool = selector.select(round, again)
        assert selector.batch_size is not None
        # None: all clients are candidates
        pool = np.arange(server.m) if pool is None else pool
        if present is not None and selector.among is not None:
            pool = selector.among(self.setup.seed, len(pool), round, again, present)
        by_move = selector.score == "score_dual_move"
        extra = given if by_move else ()
        scores = server.call(getattr(self.setup.algorithm, selector.score), x, selector.batch_size, *extra, to=pool)
        server.schedule.note_scores(pool, None if by_move else selector.batch_size, server.dtype.itemsize)
        # stable, so that of equal scores the lower client number is taken on every machine
        best = np.sort(pool[np.argsort(-scores, kind="stable")[: selector.size - selector.uniform]])
        if not selector.uniform:
            return best
        rng = stream(self.setup.seed, "selection", round, again, UNIFORM_PART)
        # drawn as positions among the other clients, so that one stream serves any number of candidates
        everyone = np.arange(server.m) if present is None else present
        others = len(everyone) - len(best)
        positions = rng.choice(others, min(selector.uniform, others), replace=False, shuffle=False)
        return np.sort(np.concatenate([best, everyone[find_untaken(np.searchsorted(everyone, best), positions)]]))


def make_draw(
    server: ClientCaller, participants: ActiveSelector
) -> Callable[[int, Array, tuple[Any, ...]], Array | None]:
    """Return a function draw(index, x, extra) that selects clients, rising (None: all)."""
    if participants.selector.batch_size is not None:
        return partial(participants.select, server)
    return lambda index, x, extra: participants.selector.select(server.round, index)


def center_weighted_mean(mean: Any, deficit: float, around: Any) -> Any:
    """Center a weighted mean, or a tuple of them, about ``around``; the weights have the mean 1 − ``deficit``."""
    if isinstance(mean, tuple):
        return tuple([center_weighted_mean(part, deficit, point) for part, point in zip(mean, around, strict=True)])
    return (mean + deficit * around).astype(np.asarray(mean).dtype)
