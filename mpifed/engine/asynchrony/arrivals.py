"""Asynchronous runs: which uploads arrive first, what each client started from, and what is still to be computed."""

from typing import Any

import numpy as np

from mpifed.core.checksummed import check_array
from mpifed.core.errors import UserError
from mpifed.core.streams import streams
from mpifed.core.typing import Array
from mpifed.features.asynchronous import Asynchronous
from mpifed.features.simulated_time.devices import SimulatedDevices
from mpifed.federation.request import ARRIVE, CALL, REST, Request
from mpifed.federation.schedule import NOTHING_SENT, Schedule, SelectionDraw
from mpifed.federation.transform import MessageCost

FLIGHT = 2  # the stream of a client at its own count of uploads; those of rounds have 0 and 1
ASYNCHRONOUS = "asynchronous "  # of names in checkpoints
SAVED = {"away": "busy", "due": "due", "begun": "begun", "count": "finished", "start": "start"}  # in checkpoints

Start = tuple[tuple[int, int], tuple[Any, ...]]  # round and call, and arguments, of clients that began together


class Arrivals(Schedule):
    """Clients under way, of m clients: since when, and which of them have not been computed yet.

    ``busy`` (m,) tells who is under way, ``due`` when its upload arrives, ``begun`` how many rounds were over when it
    was sent a model, ``finished`` how many uploads it has sent or dropped, ``start`` its index in ``starts``, or −1
    once it has been computed, ``leaves`` when it leaves and so loses its work. ``ages`` are those of the last arrivals,
    ``all_ages`` those of the round, an array for each call of ``arrivals``; ``came`` (m,) tells who has arrived in it,
    ``at_once`` how many it has computed.
    """

    ages: Array = np.zeros(0, np.int64)

    def __init__(self, asynchronous: Asynchronous, devices: SimulatedDevices) -> None:
        check_arrivals(asynchronous, devices)
        super().__init__(len(devices.sizes))
        self.table, self.devices = asynchronous, devices
        self.busy = np.zeros(self.m, bool)
        self.due = np.zeros(self.m)
        self.begun = np.zeros(self.m, np.int64)
        self.finished = np.zeros(self.m, np.int64)
        self.start = np.full(self.m, -1)
        self.starts: list[Start] = []
        self.leaves = np.full(self.m, np.inf)
        self.available = self.m
        self.saved = SAVED if devices.system.availability is None else SAVED | {"leaves": "leaves"}
        self.bits: int | None = None  # of an upload, where the method compresses it
        self.came = np.zeros(self.m, bool)
        self.all_ages: list[Array] = []
        self.at_once = 0

    def begin(self, round: int) -> None:
        super().begin(round)
        presence = self.devices.presence
        if presence is not None:
            self.seconds = presence.wait(round, self.seconds, 0 if self.busy.any() else 1)
            self.available = int(presence.there.sum())
        self.came[:] = False
        self.all_ages = []
        self.at_once = 0

    def row(self) -> dict[str, float]:
        ages = np.concatenate(self.all_ages) if self.all_ages else np.zeros(1)
        row = {
            "staleness": float(ages.mean()),
            "staleness_max": float(ages.max()),
            "computed_at_once": self.at_once,
            "simulated_seconds": self.seconds,
        }
        return row if self.devices.presence is None else row | {"available": self.available}

    def select(self, draw: SelectionDraw, units: int) -> Array | None:
        self.selected = self.free
        return self.selected

    @property
    def free(self) -> Array | None:
        presence = self.devices.presence
        if presence is None:
            return np.flatnonzero(~self.busy) if self.busy.any() else None
        presence.update(self.seconds)
        return np.flatnonzero(~self.busy & presence.there)

    def drop(self, age: int) -> None:
        self.lose(self.busy & (self.round - 1 - self.begun >= age))

    def lose(self, dropped: Array) -> None:
        """Free the clients (m,) bool whose work is lost."""
        self.busy[dropped] = False
        self.start[dropped] = -1
        # what a client draws for its next upload is new, also where it never finished this one
        self.finished[dropped] += 1

    def send(self, request: Request, cost: MessageCost) -> bool:
        """Record that the clients of a request begin now."""
        ids = np.arange(self.m) if request.to is None else request.to
        self.refuse_busy(request)
        if request.each is not None:
            raise UserError(f"{request.method} cannot be sent with each = … in an asynchronous run: use an argument")
        if self.starts and request.method != self.under_way:
            raise UserError(
                f"{request.method} cannot be sent while {self.under_way} is under way: the clients of an asynchronous "
                "round all begin with the same client method"
            )
        self.under_way, self.bits = request.method, cost.bits
        factor: Any = 1.0
        jitter = self.devices.system.jitter
        if jitter:
            draws = streams(self.devices.seed, "system", ids, self.finished[ids], FLIGHT)
            factor = np.exp(jitter * np.array([draw.standard_normal() for draw in draws]))
        self.due[ids] = self.seconds + self.devices.round_times(ids, factor)
        if self.devices.presence is not None:
            self.leaves[ids] = self.devices.presence.changes[ids]
        self.busy[ids] = True
        self.begun[ids] = self.round - 1
        self.start[ids] = len(self.starts)
        self.starts.append((request.key, request.args))
        return True

    def arrivals(self) -> Array:
        """Return the clients whose uploads arrive now, rising, and advance the simulated time."""
        busy = np.flatnonzero(self.busy)
        if not len(busy):
            raise UserError(NOTHING_SENT)
        stay = busy[self.due[busy] <= self.leaves[busy]]
        # where all would leave before they are done, the fastest replies all the same
        busy = stay if len(stay) else busy[[np.argmin(self.due[busy])]]
        last = min(self.table.arrivals, len(busy)) - 1
        # partition finds the time of the last arrival in linear time; only those at or before it are sorted
        candidates = busy[self.due[busy] <= np.partition(self.due[busy], last)[last]]
        # stable: of equal times the lower client numbers arrive first
        first = candidates[np.argsort(self.due[candidates], kind="stable")][: last + 1]
        if self.table.staleness is not None:
            # the server waits for uploads that would become too old, also where that is long
            first = np.union1d(first, busy[self.round - 1 - self.begun[busy] >= self.table.staleness])
        arrived = np.sort(first)
        # time never goes back: an upload that arrived while the server waited for an older one is used now
        self.seconds = max(self.seconds, float(self.due[arrived].max()))
        self.ages = self.round - 1 - self.begun[arrived]
        self.busy[arrived] = False
        self.lose(self.busy & (self.leaves <= self.seconds))
        self.finished[arrived] += 1
        self.times_selected[arrived] += 1
        self.came[arrived] = True
        self.all_ages.append(self.ages)
        # a client may arrive several times in a round, and takes part in it once
        self.selected = arrived if len(self.all_ages) == 1 else np.flatnonzero(self.came)
        return arrived

    def uploads(self, of: Array | None) -> tuple[Request | None, Request, MessageCost]:
        """Return the request for uploads that have arrived, and before it one that computes them if any is missing."""
        first = None
        # Arrival times follow from samples, gradients and bytes, so nothing need be computed to know them. Example:
        # clients 0 and 1 begin from x0; 0 arrives, begins anew from x1, arrives again; only now is 1 needed. When the
        # first upload of 0 was asked for, 1 was computed too, from its own x0, and its upload has been kept since. So
        # all ranks compute together, and the bits are those of computing one upload after the other
        if (self.start[slice(None) if of is None else of] >= 0).any():
            ids = np.flatnonzero(self.start >= 0)
            to = None if len(ids) == self.m else ids
            # hosts keep the uploads
            first = Request(self.under_way, stack_starts(self.starts), to, self.start[ids], request_type=REST)
            self.at_once += len(ids)
            self.start[ids] = -1
            # no client under way needs an old model any more: hosts keep their new states
            self.starts = []
        return first, Request(self.under_way, to=of, request_type=ARRIVE), MessageCost(bits=self.bits)

    def check(self, request: Request) -> None:
        if request.request_type == CALL:
            self.refuse_busy(request)

    def refuse_busy(self, request: Request) -> None:
        """Raise UserError where a request calls clients that are under way."""
        if self.busy[slice(None) if request.to is None else request.to].any():
            raise UserError(
                f"{request.method} calls clients that are under way: in an asynchronous run a method can call only the "
                "clients that have arrived, to=fed.arrivals()"
            )

    def export_state(self) -> dict[str, Array]:
        keys, *args = stack_starts(self.starts)
        columns = {name: getattr(self, attribute) for name, attribute in self.saved.items()}
        columns |= {"keys": keys, "bits": np.array(self.bits or 0)}
        columns |= {f"argument {k}": column for k, column in enumerate(args)}
        return {ASYNCHRONOUS + name: values for name, values in columns.items()}

    def restore(self, seconds: float, under_way: str, arrays: dict[str, Array]) -> None:
        """Continue from a checkpoint; raise ValueError where its arrays do not fit these clients."""
        saved = {name.removeprefix(ASYNCHRONOUS): x for name, x in arrays.items() if name.startswith(ASYNCHRONOUS)}
        for name, attribute in self.saved.items():
            values = getattr(self, attribute)
            check_array(f"{ASYNCHRONOUS}{name}", saved[name], values.shape, values.dtype)
            values[:] = saved[name]
        self.seconds, self.under_way = seconds, under_way
        self.bits = int(saved["bits"]) or None
        columns = [saved[f"argument {k}"] for k in range(sum(name.startswith("argument") for name in saved))]
        # numbers become Python's again, as when they were sent: hosts pack ints and floats in different ways
        rows = zip(*[column.tolist() if column.ndim == 1 else list(column) for column in columns], strict=True)
        arguments = list(rows) if columns else [()] * len(saved["keys"])
        self.starts = [((int(a), int(b)), args) for (a, b), args in zip(saved["keys"], arguments, strict=True)]
        if self.start.min() < -1 or self.start.max() >= len(self.starts):
            raise ValueError(f"{ASYNCHRONOUS}start must be below the {len(self.starts)} starts, and at least -1")


def check_arrivals(table: Asynchronous, devices: SimulatedDevices) -> None:
    """Raise UserError where the clients of ``devices`` cannot be asynchronous."""
    m = len(devices.sizes)
    if table.arrivals > m:
        raise UserError(f"asynchronous.arrivals = {table.arrivals} is wrong: it must be between 1 and the {m} clients")
    T = devices.round_times(np.arange(m), 1.0)
    if not (T > 0).all():
        raise UserError(
            f"asynchronous.arrivals = {table.arrivals} is wrong: with this [system] client {int(np.argmin(T))} "
            "takes no time and would always arrive first, so give system.speed, system.latency or a bandwidth"
        )


def stack_starts(starts: list[Start]) -> tuple[Array, ...]:
    """Return round and call of each start (K, 2), then each argument of all starts: numbers (K,) or arrays (K, …)."""
    keys = np.array([key for key, _ in starts], np.int64).reshape(-1, 2)
    return keys, *[np.array(parts) for parts in zip(*(args for _, args in starts), strict=True)]
