"""The stage [compress]: what the server and the clients make of requests and replies."""

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from mpifed.compressors.compressor import Compressor, Generators, Identity
from mpifed.core.promises import Keeps
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.features.compression.compress import Compress
from mpifed.federation.request import ARRIVE, FOR_THE_RECORD, SCORES, Reply, Request, is_charged, parts_of, width
from mpifed.federation.setup import Setup
from mpifed.federation.stage import HostStage, Postage, ServerStage, Visit

COMPRESSED = "compressed"
PREFIX = "compress "  # of names in checkpoints
MODELS = ("model", "compressed")  # kinds of uploads of which those of n numbers are models


def applies(request: Request, postage: Postage) -> bool:
    """Whether the messages of a request are compressed: those of a round, not what the server has already."""
    known = request.verb in FOR_THE_RECORD or postage.charge is False
    return request.key[0] > 0 and not (known or request.reduce == "max" or request.method in SCORES)


def changed(compressor: Compressor | None) -> Compressor | None:
    """A compressor that changes messages, or None."""
    return None if isinstance(compressor, Identity) else compressor


def shrunk(C: Compressor, rows: Array, draws: Callable[[], Generators]) -> Array:
    """aC(rows), which is contractive."""
    a, _ = C.contraction(rows.shape[1])
    sent = C.compress(rows, draws)
    return sent if a == 1 else a * sent


class ServerCompression(ServerStage):
    """The server's side: it compresses what it sends, and knows what uploads cost. ``kept``: x̂ less its start."""

    # Memories are in checkpoints, and hold what was sent; whether C keeps sums private, C says.
    keeps = Keeps.EVERYTHING

    def __init__(self, setup: Setup, table: Compress) -> None:
        self.setup, self.up = setup, table.up
        self.compressor = changed(table.down)
        self.kept: dict[str, Array] = {}  # method and position of the argument -> (N,)

    def down(self, request: Request, postage: Postage) -> None:
        """Put what clients receive into the place of the arrays of a request, and note its bits."""
        if not applies(request, postage) or request.verb == ARRIVE:  # what arrives was compressed when it was computed
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
                args[k] = self._received(f"{request.method} {k}", x, draws)
                bits += self.compressor.bits(x.size, x.itemsize)
        request.args = tuple(args)
        postage.down = bits, self.setup.m

    def _received(self, name: str, x: Array, draws: np.random.Generator) -> Array:
        """x̂, which all clients have after this message."""
        assert self.compressor is not None
        # memory begins at the first model, which both sides know, and at 0 for what is no model
        start = self.setup.start if x.shape == self.setup.start.shape else np.zeros_like(x)
        kept = self.kept.get(name, np.zeros_like(x))
        self.kept[name] = kept + shrunk(self.compressor, (x - (start + kept))[None], lambda: [draws])[0]
        return start + self.kept[name]

    def cost(self, request: Request, reply: Reply, count: int, postage: Postage) -> None:
        """The bits of one client's reply, unless the method has compressed it itself."""
        if self.up is None or reply.layout is None or not reply.layout.shapes or postage.bits is not None:
            return
        if applies(request, postage):
            size = self.setup.start.itemsize
            postage.bits = sum(self.up.bits(width(s), size) if s else 8 * size for s in reply.layout.shapes)

    def saved(self) -> dict[str, Array]:
        return {PREFIX + name: x for name, x in self.kept.items()}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.kept = {name.removeprefix(PREFIX): x for name, x in arrays.items() if name.startswith(PREFIX)}


class HostCompression(HostStage):
    """The side of ``count`` clients of a host: what becomes of their uploads. ``kept``: h less its start, or e."""

    # It comes after the method, so that it compresses uploads that have their noise; memories are in checkpoints.
    keeps = Keeps.EVERYTHING

    def __init__(self, setup: Setup, table: Compress, count: int) -> None:
        self.setup = setup
        self.table = table
        self.algorithm = setup.algorithm
        self.count = count
        self.compressor = changed(table.up)
        self.feedback = setup.algorithm.upload.feedback if table.feedback == "auto" else table.feedback
        self.kept: dict[str, Array] = {}  # method and position in the reply -> (count, N), in block order

    def up(self, request: Request, visit: Visit, new: Any, reply: Any) -> tuple[Any, Any]:
        """The new state and the reply of clients as the server receives them."""
        if self.compressor is None:
            return new, reply
        f = visit.f
        draws = cache(lambda: f.streams(self.setup.seed, "compression"))
        if request.last is not None:
            self.table.refuse_feedback(self.algorithm.label())
            # the last upload that the server keeps is the memory: the change is compressed, and both sides add it up
            before = getattr(visit.state, request.last)
            after = getattr(new, request.last)
            return new._replace(**{request.last: before + shrunk(self.compressor, after - before, draws)}), reply
        if reply is None:
            return new, reply
        models = self.setup.start.shape, (len(f), *self.setup.start.shape)  # one for all clients, or one each
        x = next((a for a in request.args if np.shape(a) in models), 0.0)
        parts = [
            self._received(f"{request.method} {k}", part, visit.picks, x, draws)
            for k, part in enumerate(parts_of(reply)[0])
        ]
        new = self.algorithm.received(f, new, tuple(parts))
        return new, tuple(parts) if isinstance(reply, tuple) else parts[0]

    def _received(
        self, name: str, part: Array, picks: slice | Array, x: Array | float, draws: Callable[[], Generators]
    ) -> Array:
        """û of the uploads ``part`` (c, …) of the clients ``picks``."""
        assert self.compressor is not None
        # single numbers travel as they are
        if part.ndim < 2:
            return part
        u = part.reshape(len(part), -1)
        models = self.algorithm.upload.kind in MODELS and u.shape[1] == self.setup.start.size
        start, x = (self.setup.start, x) if models else (0.0, 0.0)
        if self.feedback == "none":
            return (x + self.compressor.compress(u - x, draws)).reshape(part.shape)
        kept = self.kept.setdefault(name, np.zeros((self.count, u.shape[1]), u.dtype))
        if self.feedback == "memory":
            kept[picks] += shrunk(self.compressor, u - (start + kept[picks]), draws)
            return (start + kept[picks]).reshape(part.shape)
        wanted = u - x + kept[picks]
        sent = shrunk(self.compressor, wanted, draws)
        kept[picks] = wanted - sent
        return (x + sent).reshape(part.shape)

    def saved(self) -> dict[str, Array]:
        return {PREFIX + name: rows for name, rows in self.kept.items()}

    def restore(self, arrays: dict[str, Array]) -> None:
        names = [name for name in arrays if name.startswith(PREFIX)]
        self.kept = {name.removeprefix(PREFIX): arrays.pop(name) for name in names}
