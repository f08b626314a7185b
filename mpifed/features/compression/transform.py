"""Transform of [compress]: the server compresses requests, the clients their uploads."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from mpifed.compressors.compressor import Compressor, Generators, Identity
from mpifed.core.errors import UserError
from mpifed.core.promises import Supports
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.features.compression.compress import Compress
from mpifed.federation.request import Request, entry_count, is_charged, join_reply, split_reply
from mpifed.federation.setup import RunSpec
from mpifed.federation.transform import ClientBatch, MessageCost, Transform

MODELS = ("model", "compressed")  # kinds of uploads whose vectors of n numbers are models


def drop_identity(compressor: Compressor | None) -> Compressor | None:
    """Return the compressor if it changes messages, else None."""
    return None if isinstance(compressor, Identity) else compressor


def contract(C: Compressor, rows: Array, draws: Callable[[], Generators]) -> Array:
    """Return aC(rows), which is contractive."""
    a, _ = C.contraction(rows.shape[1])
    sent = C.compress(rows, draws)
    return sent if a == 1 else a * sent


class MessageCompression(Transform):
    """Compressed messages: the server compresses requests and counts bits, the clients compress their uploads.

    ``server_state`` has x̂ less its start, by method and position of the argument; ``client_state`` h less its start,
    or e, by method and position in the upload.
    """

    # It comes after the method, so uploads have their noise already; C itself says whether it keeps sums private.
    supports = Supports.EVERYTHING
    name = "compress"

    def __init__(self, setup: RunSpec, table: Compress) -> None:
        self.setup = setup
        self.table = table
        self.algorithm = setup.algorithm
        self.up = drop_identity(table.up)
        self.down = drop_identity(table.down)
        self.feedback = setup.algorithm.upload.feedback if table.feedback == "auto" else table.feedback

    def concerns(self, request: Request, cost: MessageCost) -> bool:
        """Return whether a request is compressed: those of rounds, and what is charged before them."""
        return super().concerns(request, cost) or (bool(cost.charge) and request.reduce != "max")

    def begin(self, request: Request, cost: MessageCost) -> None:
        """Replace the arrays of a request by what clients receive, and note its bits."""
        if not self.applies(request, cost):  # what arrives was compressed when it was computed
            return
        self.mark(request, first=True)
        if self.down is None:
            return
        args = list(request.args)
        bits = 0
        draws = stream(self.setup.seed, "compression", self.setup.m, *request.key)
        for k, x in enumerate(args):
            if is_charged(x) and not x.ndim:
                bits += 8 * x.itemsize  # a single number travels as it is
            elif is_charged(x):
                args[k] = self.compress_model(f"{request.method} {k}", x, draws)
                bits += self.down.bits(x.size, x.itemsize)
        request.args = tuple(args)
        cost.down = bits, self.setup.m

    def compress_model(self, name: str, x: Array, draws: np.random.Generator) -> Array:
        """Return x̂, which all clients have after this message, and update the memory."""
        assert self.down is not None
        # memory begins at the first model, which both sides know, and at 0 for what is no model
        start = self.setup.shared_start if x.shape == self.setup.shared_start.shape else np.zeros_like(x)
        memory = self.server_state.get(name, np.zeros_like(x))
        self.server_state[name] = memory + contract(self.down, (x - (start + memory))[None], lambda: [draws])[0]
        return start + self.server_state[name]

    def bits(self, shapes: Sequence[tuple[int, ...]]) -> int | None:
        """Return the bits of one client's upload; None without a compressor of uploads."""
        if self.table.up is None:
            return None
        size = self.setup.shared_start.itemsize
        return sum(self.table.up.bits(entry_count(shape), size) if shape else 8 * size for shape in shapes)

    def encode(self, request: Request, batch: ClientBatch, new: Any, upload: Any) -> tuple[Any, Any]:
        """Return the new state and the upload of clients as the server receives them."""
        if self.up is None:
            return new, upload
        f = batch.f
        draws = cache(lambda: f.streams(self.setup.seed, "compression"))
        if request.last is not None:
            self.refuse_feedback()
            # the last upload that the server keeps is the memory: the change is compressed, and both sides add it up
            before = getattr(batch.state, request.last)
            after = getattr(new, request.last)
            return new._replace(**{request.last: before + contract(self.up, after - before, draws)}), upload
        if upload is None:
            return new, upload
        models = (
            self.setup.shared_start.shape,
            (len(f), *self.setup.shared_start.shape),
        )  # one for all clients, or one each
        x = next((a for a in request.args if np.shape(a) in models), 0.0)
        parts = tuple(
            [
                # single numbers travel as they are
                part if part.ndim < 2 else self.compress_upload(f"{request.method} {k}", part, batch, x, draws)
                for k, part in enumerate(split_reply(upload)[0])
            ]
        )
        new = self.algorithm.remember_upload(f, new, parts)
        return new, join_reply(upload, parts)

    def refuse_feedback(self) -> None:
        """Raise UserError for feedback other than memory, where the server keeps the last uploads of all."""
        # a class of a user's own may sum last uploads without saying so in its ``upload``, which conflicts look at
        if self.table.feedback in ("error", "none"):
            raise UserError(
                f'compress.feedback = "{self.table.feedback}" is wrong: the server of {self.algorithm.label()} keeps '
                'the last upload of every client, and what travels is the change, so it must be "memory"'
            )

    def compress_upload(
        self, name: str, part: Array, batch: ClientBatch, x: Array | float, draws: Callable[[], Generators]
    ) -> Array:
        """Return û of the uploads ``part`` (c, …) of a batch, and update the memory."""
        assert self.up is not None
        u = part.reshape(len(part), -1)
        models = self.algorithm.upload.content in MODELS and u.shape[1] == self.setup.shared_start.size
        start, x = (self.setup.shared_start, x) if models else (0.0, 0.0)
        if self.feedback == "none":
            return (x + self.up.compress(u - x, draws)).reshape(part.shape)
        memory = self.client_state.at(batch, name, u)
        if self.feedback == "memory":
            memory = memory + contract(self.up, u - (start + memory), draws)
            self.client_state.put(batch, name, memory)
            return (start + memory).reshape(part.shape)
        target = u - x + memory
        sent = contract(self.up, target, draws)
        self.client_state.put(batch, name, target - sent)
        return (x + sent).reshape(part.shape)
