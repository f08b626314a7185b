"""Stages of [compress]: the server compresses requests, the clients their replies."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from mpifed.compressors.compressor import Compressor, Generators, Identity
from mpifed.core.promises import Supports
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.features.compression.compress import Compress
from mpifed.federation.request import (
    ARRIVE,
    FOR_THE_RECORD,
    SCORES,
    Reply,
    Request,
    entry_count,
    is_charged,
    split_reply,
)
from mpifed.federation.setup import RunSpec
from mpifed.federation.stage import ClientBatch, HostStage, MessageCost, ServerStage

COMPRESSED = "compressed"
PREFIX = "compress "  # of names in checkpoints
MODELS = ("model", "compressed")  # kinds of uploads whose vectors of n numbers are models


def applies(request: Request, message_cost: MessageCost) -> bool:
    """Return whether the messages of a request are compressed: those of a round, except what costs nothing."""
    is_free = request.request_type in FOR_THE_RECORD or message_cost.charge is False
    return request.key[0] > 0 and not (is_free or request.reduce == "max" or request.method in SCORES)


def drop_identity(compressor: Compressor | None) -> Compressor | None:
    """Return the compressor if it changes messages, else None."""
    return None if isinstance(compressor, Identity) else compressor


def contract(C: Compressor, rows: Array, draws: Callable[[], Generators]) -> Array:
    """Return aC(rows), which is contractive."""
    a, _ = C.contraction(rows.shape[1])
    sent = C.compress(rows, draws)
    return sent if a == 1 else a * sent


class ServerCompression(ServerStage):
    """Server's side: it compresses downloads and counts the bits of uploads. ``memory``: x̂ less its start."""

    # Memories are in checkpoints and hold what was sent; C itself says whether it keeps sums private.
    supports = Supports.EVERYTHING

    def __init__(self, setup: RunSpec, table: Compress) -> None:
        self.setup, self.up = setup, table.up
        self.compressor = drop_identity(table.down)
        self.memory: dict[str, Array] = {}  # method and position of the argument -> (N,)

    def down(self, request: Request, message_cost: MessageCost) -> None:
        """Replace the arrays of a request by what clients receive, and note its bits."""
        if (
            not applies(request, message_cost) or request.request_type == ARRIVE
        ):  # what arrives was compressed when it was computed
            return
        request.stages = {COMPRESSED: None, **request.stages}
        if self.compressor is None:
            return
        args = list(request.args)
        bits = 0
        draws = stream(self.setup.seed, "compression", self.setup.m, *request.key)
        for k, x in enumerate(args):
            if is_charged(x) and not x.ndim:
                bits += 8 * x.itemsize  # a single number travels as it is
            elif is_charged(x):
                args[k] = self._compress(f"{request.method} {k}", x, draws)
                bits += self.compressor.bits(x.size, x.itemsize)
        request.args = tuple(args)
        message_cost.down = bits, self.setup.m

    def _compress(self, name: str, x: Array, draws: np.random.Generator) -> Array:
        """Return x̂, which all clients have after this message, and update the memory."""
        assert self.compressor is not None
        # memory begins at the first model, which both sides know, and at 0 for what is no model
        start = self.setup.start if x.shape == self.setup.start.shape else np.zeros_like(x)
        memory = self.memory.get(name, np.zeros_like(x))
        self.memory[name] = memory + contract(self.compressor, (x - (start + memory))[None], lambda: [draws])[0]
        return start + self.memory[name]

    def cost(self, request: Request, reply: Reply, count: int, message_cost: MessageCost) -> None:
        """Set the bits of one client's reply, unless the method has compressed it itself."""
        if self.up is None or reply.layout is None or not reply.layout.shapes or message_cost.bits is not None:
            return
        if applies(request, message_cost):
            size = self.setup.start.itemsize
            message_cost.bits = sum(self.up.bits(entry_count(s), size) if s else 8 * size for s in reply.layout.shapes)

    def export_state(self) -> dict[str, Array]:
        return {PREFIX + name: x for name, x in self.memory.items()}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.memory = {name.removeprefix(PREFIX): x for name, x in arrays.items() if name.startswith(PREFIX)}


class HostCompression(HostStage):
    """Side of ``count`` clients of a host: it compresses uploads. ``memory``: h less its start, or e."""

    # It comes after the method, so uploads have their noise already; memories are in checkpoints.
    supports = Supports.EVERYTHING

    def __init__(self, setup: RunSpec, table: Compress, count: int) -> None:
        self.setup = setup
        self.table = table
        self.algorithm = setup.algorithm
        self.count = count
        self.compressor = drop_identity(table.up)
        self.feedback = setup.algorithm.upload.feedback if table.feedback == "auto" else table.feedback
        self.memory: dict[str, Array] = {}  # method and position in the reply -> (count, N), in block order

    def up(self, request: Request, batch: ClientBatch, new: Any, reply: Any) -> tuple[Any, Any]:
        """Return the new state and the reply of clients as the server receives them."""
        if self.compressor is None:
            return new, reply
        f = batch.f
        draws = cache(lambda: f.streams(self.setup.seed, "compression"))
        if request.last is not None:
            self.table.refuse_feedback(self.algorithm.label())
            # the last upload that the server keeps is the memory: the change is compressed, and both sides add it up
            before = getattr(batch.state, request.last)
            after = getattr(new, request.last)
            return new._replace(**{request.last: before + contract(self.compressor, after - before, draws)}), reply
        if reply is None:
            return new, reply
        models = self.setup.start.shape, (len(f), *self.setup.start.shape)  # one for all clients, or one each
        x = next((a for a in request.args if np.shape(a) in models), 0.0)
        parts = [
            self._compress(f"{request.method} {k}", part, batch.picks, x, draws)
            for k, part in enumerate(split_reply(reply)[0])
        ]
        new = self.algorithm.remember_upload(f, new, tuple(parts))
        return new, tuple(parts) if isinstance(reply, tuple) else parts[0]

    def _compress(
        self, name: str, part: Array, picks: slice | Array, x: Array | float, draws: Callable[[], Generators]
    ) -> Array:
        """Return û of the uploads ``part`` (c, …) of the clients ``picks``, and update the memory."""
        assert self.compressor is not None
        # single numbers travel as they are
        if part.ndim < 2:
            return part
        u = part.reshape(len(part), -1)
        models = self.algorithm.upload.content in MODELS and u.shape[1] == self.setup.start.size
        start, x = (self.setup.start, x) if models else (0.0, 0.0)
        if self.feedback == "none":
            return (x + self.compressor.compress(u - x, draws)).reshape(part.shape)
        memory = self.memory.setdefault(name, np.zeros((self.count, u.shape[1]), u.dtype))
        if self.feedback == "memory":
            memory[picks] += contract(self.compressor, u - (start + memory[picks]), draws)
            return (start + memory[picks]).reshape(part.shape)
        target = u - x + memory[picks]
        sent = contract(self.compressor, target, draws)
        memory[picks] = target - sent
        return (x + sent).reshape(part.shape)

    def export_state(self) -> dict[str, Array]:
        return {PREFIX + name: rows for name, rows in self.memory.items()}

    def restore(self, arrays: dict[str, Array]) -> None:
        names = [name for name in arrays if name.startswith(PREFIX)]
        self.memory = {name.removeprefix(PREFIX): arrays.pop(name) for name in names}
