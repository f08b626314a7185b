"""Asynchronous runs: which uploads arrive first, what each client started from, and what is still to be computed."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from msgspec import Meta

from mpifed.core.component import Table
from mpifed.core.errors import UserError
from mpifed.core.streams import streams
from mpifed.core.typing import Array
from mpifed.federation.request import Request
from mpifed.federation.stragglers import Devices, System

FLIGHT = 2  # the stream of a client at its own count of uploads; those of rounds have 0 and 1
ASYNCHRONOUS = "asynchronous "  # of names in checkpoints
NOTHING_SENT = "no upload can arrive: fed.send must be called before fed.arrivals"

Start = tuple[tuple[int, int], tuple[Any, ...]]  # round and call, and arguments, of clients that began together


class Asynchronous(Table):
    """Asynchronous rounds: the server takes a step as soon as the first uploads arrive; the others are under way.

    All clients are sent a model at the start, and work at the same time. An upload arrives T seconds after the model
    was sent to its client: T as [system] states it, with the jitter of the client's own stream at its own count of
    uploads. In a round

    - the first ``arrivals`` uploads by time arrive, of equal times those of lower client numbers, and with them every
      upload that would otherwise be more than ``staleness`` rounds old; simulated_seconds goes on to the last of these;
    - the server makes its new model of them, as the method says;
    - at the start of the next round it sends that model to the clients that arrived, and they begin anew.

    The age of an upload is the number of rounds between the one that sent its client the model and the one in which it
    arrives: 0 where it comes in the same round. The columns staleness and staleness_max have the mean and the largest.

    Since T is computed and never measured, who arrives is known beforehand. Nothing is computed when a model is sent.
    When an upload is needed that is not there, one request lets all clients under way compute, on all ranks, each from
    its own model; their uploads rest with them until their time. computed_at_once says how many these are. The bits are
    those of computing one upload after the other, on any number of ranks.

    /selection has the clients that arrived, and [selection] has no say. A model sent counts as a download in the
    round that sends it, an upload in the round in which it arrives.
    """

    arrivals: Annotated[int, Meta(ge=1, description="uploads with which the server takes a step")] = 1
    staleness: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="rounds after which the server waits for an upload; 0: for all clients; absent: never"),
    ] = None

    def flights(self, devices: Devices, seed: int) -> Flights:
        """The clients of ``devices``, none of them under way. UserError where they cannot be asynchronous."""
        m = len(devices.sizes)
        if self.arrivals > m:
            raise UserError(
                f"asynchronous.arrivals = {self.arrivals} is wrong: it must be between 1 and the {m} clients"
            )
        self.refuse_absent(devices.system)
        T = devices.times(np.arange(m), 1.0, devices.work, *devices.bytes)
        if not (T > 0).all():
            raise UserError(
                f"asynchronous.arrivals = {self.arrivals} is wrong: with this [system] client {int(np.argmin(T))} "
                "takes no time and would always arrive first, so give system.speed, system.latency or a bandwidth"
            )
        return Flights(self, devices, seed)

    def refuse_absent(self, system: System) -> None:
        """UserError for keys of [system] that are about rounds in which all selected clients have to reply."""
        for key, usual in (("dropout", 0.0), ("deadline", None), ("least", 1), ("partial", False)):
            value = getattr(system, key)
            if value != usual:
                given = str(value).lower() if isinstance(value, bool) else value
                raise UserError(
                    f"system.{key} = {given} is wrong with [asynchronous]: there every client replies in its own "
                    "time, and asynchronous.arrivals says how many the server waits for, so leave it out"
                )


class Flights:
    """Which of m clients are under way, since when, and which of these have not been computed.

    ``due`` (m,) is when the upload of a client arrives, ``begun`` the number of the step that sent it a model,
    ``count`` how many it has uploaded, ``start`` which of the ``starts`` it has, or −1 where it has been computed.
    ``ages`` are those of the uploads that arrived last, ``at_once`` the clients that the round has computed.
    """

    def __init__(self, table: Asynchronous, devices: Devices, seed: int) -> None:
        m = len(devices.sizes)
        self.table, self.devices, self.seed = table, devices, seed
        self.away = np.zeros(m, bool)
        self.due = np.zeros(m)
        self.begun, self.count = np.zeros((2, m), np.int64)
        self.start = np.full(m, -1)
        self.starts: list[Start] = []
        self.method = ""
        self.bits: int | None = None  # of an upload, where it is compressed
        self.steps = 0  # calls of ``arrive``
        self.ages: Array = np.zeros(0, np.int64)
        self.at_once = 0

    def begin(self) -> None:
        """A new round."""
        self.at_once = 0

    def row(self) -> dict[str, float]:
        """The columns of the round."""
        mean, largest = (float(self.ages.mean()), float(self.ages.max())) if len(self.ages) else (0.0, 0.0)
        return {
            "staleness": mean,
            "staleness_max": largest,
            "computed_at_once": self.at_once,
            "simulated_seconds": self.devices.seconds,
        }

    def free(self) -> Array | None:
        """The clients that are not under way, rising; None: all."""
        return np.flatnonzero(~self.away) if self.away.any() else None

    def send(self, request: Request) -> None:
        """Note that the clients of a request begin now."""
        ids = np.arange(len(self.away)) if request.to is None else request.to
        self.refuse_away(request)
        if self.starts and request.method != self.method:
            raise UserError(
                f"{request.method} cannot be sent while {self.method} is under way: the clients of an asynchronous "
                "round all begin with the same client method"
            )
        self.method, self.bits = request.method, request.bits
        factor: Any = 1.0
        if self.devices.system.jitter:
            draws = streams(self.seed, "system", ids, self.count[ids], FLIGHT)
            factor = np.exp(self.devices.system.jitter * np.array([draw.standard_normal() for draw in draws]))
        self.due[ids] = self.devices.seconds + self.devices.times(ids, factor, self.devices.work, *self.devices.bytes)
        self.away[ids], self.begun[ids], self.start[ids] = True, self.steps, len(self.starts)
        self.starts.append((request.key, request.args))

    def arrive(self) -> Array:
        """The clients whose uploads arrive now, rising; the simulated time passes."""
        away = np.flatnonzero(self.away)
        if not len(away):
            raise UserError(NOTHING_SENT)
        age, last = self.steps - self.begun[away], min(self.table.arrivals, len(away)) - 1
        near = away[self.due[away] <= np.partition(self.due[away], last)[last]]
        first = near[np.argsort(self.due[near], kind="stable")][: last + 1]
        if self.table.staleness is not None:
            first = np.union1d(first, away[age >= self.table.staleness])
        arrived = np.sort(first)
        self.devices.seconds = max(self.devices.seconds, float(self.due[arrived].max()))
        self.ages = self.steps - self.begun[arrived]
        self.steps += 1
        self.away[arrived] = False
        self.count[arrived] += 1
        return arrived

    def lacking(self, ids: Array | slice) -> bool:
        """Whether an upload of the clients ``ids`` has not been computed."""
        return bool((self.start[ids] >= 0).any())

    def request(self) -> Request:
        """The request that lets all clients compute that have not: their starts as a table, and whose row is whose."""
        ids = np.flatnonzero(self.start >= 0)
        to = None if len(ids) == len(self.start) else ids
        made = resting(self.method, self.starts, to, self.start[ids])
        self.at_once += len(ids)
        self.start[ids], self.starts = -1, []
        return made

    def refuse_away(self, request: Request) -> None:
        """UserError where a request calls clients that are under way."""
        if self.away[slice(None) if request.to is None else request.to].any():
            raise UserError(
                f"{request.method} calls clients that are under way: in an asynchronous run a method can call only the "
                "clients that have arrived, to=fed.arrivals()"
            )

    def saved(self) -> dict[str, Array]:
        """What a checkpoint has of it."""
        keys, *args = table(self.starts)
        columns = {name: getattr(self, name) for name in ("away", "due", "begun", "count", "start")}
        columns |= {"keys": keys, "steps": np.array(self.steps), "bits": np.array(self.bits or 0)}
        columns |= {f"argument {k}": column for k, column in enumerate(args)}
        return {ASYNCHRONOUS + name: values for name, values in columns.items()}

    def restore(self, arrays: dict[str, Array], method: str) -> None:
        """Take back what ``saved`` put among the arrays of a checkpoint; ``method`` is what the clients run."""
        own = {name.removeprefix(ASYNCHRONOUS): x for name, x in arrays.items() if name.startswith(ASYNCHRONOUS)}
        for name in ("away", "due", "begun", "count", "start"):
            getattr(self, name)[:] = own[name]
        self.method, self.steps, self.bits = method, int(own["steps"]), int(own["bits"]) or None
        columns = [own[f"argument {k}"] for k in range(sum(name.startswith("argument") for name in own))]
        rows = zip(*[column.tolist() if column.ndim == 1 else list(column) for column in columns], strict=True)
        made = list(rows) if columns else [()] * len(own["keys"])
        self.starts = [((int(a), int(b)), args) for (a, b), args in zip(own["keys"], made, strict=True)]


def table(starts: list[Start]) -> tuple[Array, ...]:
    """Round and call of each start (K, 2), then each argument of all of them: (K,) numbers, or arrays (K, …)."""
    keys = np.array([key for key, _ in starts], np.int64).reshape(-1, 2)
    return keys, *[np.array(parts) for parts in zip(*(args for _, args in starts), strict=True)]


def resting(method: str, starts: list[Start], to: Array | None, own: Array) -> Request:
    """The request that lets the clients ``to`` compute and keep what they upload; ``own`` is each one's start."""
    return Request(method, table(starts), to, own, rest=True)
