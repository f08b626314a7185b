"""Messages on their way: what the server and the clients make of requests and replies under [compress]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mpifed.compressors.base import Compressor, Generators, Identity
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.federation.request import SCORES, Request, width
from mpifed.federation.setup import Setup

PREFIX = "compress "  # of names in checkpoints
Layout = tuple[tuple[int, ...], ...]


def applies(request: Request) -> bool:
    """Whether the messages of a request are compressed: those of a round, not what the server has already."""
    return request.key[0] > 0 and not (
        request.evaluation or request.exact or request.reduce == "max" or request.method in SCORES
    )


def changed(compressor: Compressor | None) -> Compressor | None:
    """A compressor that changes messages, or None."""
    return None if isinstance(compressor, Identity) else compressor


def shrunk(C: Compressor, rows: Array, draws: Callable[[], Generators]) -> Array:
    """aC(rows), which is contractive."""
    a, _ = C.contraction(rows.shape[1])
    sent = C.compress(rows, draws)
    return sent if a == 1 else a * sent


def traffic(setup: Setup) -> list[float]:
    """The bytes that a selected client downloads and uploads for each selection."""
    n, size, table = setup.start.size, setup.start.itemsize, setup.compress
    compressors = (None, None) if table is None else (table.down, table.up)
    return [
        count * size if C is None else count / n * -(-C.bits(n, size) // 8)
        for count, C in zip(setup.algorithm.traffic(n), compressors, strict=True)
    ]


class Downloads:
    """The server's side: it compresses what it sends, and knows what uploads cost. ``kept``: x̂ less its start."""

    def __init__(self, setup: Setup) -> None:
        self.setup, self.table = setup, setup.compress
        self.down = changed(self.table.down) if self.table is not None else None
        self.kept: dict[str, Array] = {}  # method and position of the argument -> (N,)

    def pack(self, request: Request) -> None:
        """Put what clients receive into the place of the arrays of a request, and note its bits."""
        if self.down is None or request.rest or not applies(request):
            return
        args, bits = list(request.args), 0
        draws = stream(self.setup.seed, "compression", self.setup.m, *request.key)
        for k, x in enumerate(args):
            if isinstance(x, np.ndarray) and x.dtype.kind == "f" and not x.ndim:
                bits += 8 * x.itemsize  # a single number travels as it is
            elif isinstance(x, np.ndarray) and x.dtype.kind == "f":
                args[k] = self._received(f"{request.method} {k}", x, draws)
                bits += self.down.bits(x.size, x.itemsize)
        request.args, request.down = tuple(args), (bits, self.setup.m)

    def _received(self, name: str, x: Array, draws: np.random.Generator) -> Array:
        """x̂, which all clients have after this message."""
        assert self.down is not None
        start = self.setup.start if x.shape == self.setup.start.shape else np.zeros_like(x)
        kept = self.kept.get(name, np.zeros_like(x))
        self.kept[name] = kept + shrunk(self.down, (x - (start + kept))[None], lambda: [draws])[0]
        return start + self.kept[name]

    def bits(self, request: Request, layout: Layout | None) -> int | None:
        """The bits of one client's reply of this layout; None where it is not compressed."""
        up = None if self.table is None else self.table.up
        if up is None or not layout or request.bits is not None or not applies(request):
            return request.bits
        size = self.setup.start.itemsize
        return sum(up.bits(width(shape), size) if shape else 8 * size for shape in layout)


class Uploads:
    """The side of ``count`` clients of a host: what becomes of their uploads. ``kept``: h less its start, or e."""

    def __init__(self, setup: Setup, count: int) -> None:
        self.setup, self.algorithm, self.count = setup, setup.algorithm, count
        self.up = None if setup.compress is None else changed(setup.compress.up)
        self.feedback = "" if setup.compress is None else setup.compress.kept(setup.algorithm)
        self.kept: dict[str, Array] = {}  # method and position in the reply -> (count, N), in block order

    def through(self, request: Request, picks: slice | Array, f: Local, old: Any, found: Any) -> Any:
        """``found``, the new state and the reply of the clients ``picks``, as the server receives it."""
        if self.up is None or not applies(request):
            return found
        (new, reply), made = found, list[Generators]()

        def draws() -> Generators:
            if not made:
                made.append(f.streams(self.setup.seed, "compression"))
            return made[0]

        if request.last is not None:
            assert self.setup.compress is not None
            self.setup.compress.keeping(self.algorithm)
            before, after = getattr(old, request.last), getattr(new, request.last)
            return new._replace(**{request.last: before + shrunk(self.up, after - before, draws)}), reply
        if reply is None:
            return found
        models = self.setup.start.shape, (len(f), *self.setup.start.shape)  # one for all clients, or one each
        x = next((a for a in request.args if np.shape(a) in models), 0.0)
        parts = [
            self._received(f"{request.method} {k}", part, picks, x, draws)
            for k, part in enumerate(reply if isinstance(reply, tuple) else (reply,))
        ]
        new = self.algorithm.received(f, new, tuple(parts))
        return new, tuple(parts) if isinstance(reply, tuple) else parts[0]

    def _received(
        self, name: str, part: Array, picks: slice | Array, x: Array | float, draws: Callable[[], Generators]
    ) -> Array:
        """û of the uploads ``part`` (c, …) of the clients ``picks``."""
        assert self.up is not None
        if part.ndim < 2:
            return part
        u = part.reshape(len(part), -1)
        models = self.algorithm.uploads_models and u.shape[1] == self.setup.start.size
        start, x = (self.setup.start, x) if models else (0.0, 0.0)
        if self.feedback == "none":
            return (x + self.up.compress(u - x, draws)).reshape(part.shape)
        kept = self.kept.setdefault(name, np.zeros((self.count, u.shape[1]), u.dtype))
        if self.feedback == "memory":
            kept[picks] += shrunk(self.up, u - (start + kept[picks]), draws)
            return (start + kept[picks]).reshape(part.shape)
        wanted = u - x + kept[picks]
        sent = shrunk(self.up, wanted, draws)
        kept[picks] = wanted - sent
        return (x + sent).reshape(part.shape)
