"""Stages: transformations of messages between server and clients, with a side at each end."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import msgspec

from mpifed.core.promises import NO_REASONS, NOTHING_SUPPORTED, Reasons, Supports
from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.federation.request import Reply, Request, split_reply
from mpifed.federation.sums import Reduction

WEIGHTED = "weighted"
RESTING = "resting "  # prefix of names in checkpoints of results that clients have computed ahead …
FIELD = "field "  # … and after it, of fields of their state


class MessageCost(msgspec.Struct):
    """The cost of the messages of a request; ``charge`` is the option of the call, None if it has none."""

    charge: bool | None = None
    bits: int | None = None  # of one client's compressed reply
    down: tuple[int, int] | None = None  # (bits of the compressed shared arrays, number of receivers)
    masked_bytes: tuple[int, int] | None = None  # (bytes up, further bytes down) of all masked replies together
    averaged: bool = False  # whether the server divides the sum of replies by their number


class ClientBatch(NamedTuple):
    """Clients of one block in a request, at ``picks`` in the host's arrays, with the ``state`` before it."""

    f: Local
    picks: slice | Array
    state: Any


class Checkpointable:
    """An object whose state goes into checkpoints, beside the method's; by default it has none."""

    supports: ClassVar[Supports] = NOTHING_SUPPORTED
    unsupported: ClassVar[Reasons] = NO_REASONS

    def export_state(self) -> dict[str, Array]:
        """Return arrays for a checkpoint, with a blank in their names; on hosts rows are clients in block order."""
        return {}

    def restore(self, arrays: dict[str, Array]) -> None:
        """Restore the state from the arrays of a checkpoint; on hosts remove them from the dict."""


class ServerStage(Checkpointable):
    """The server's side of a stage."""

    def down(self, request: Request, message_cost: MessageCost) -> None:
        """Put data for the hosts into ``stages`` of a request, or change its arrays, before it is sent."""

    def cost(self, request: Request, reply: Reply, count: int, message_cost: MessageCost) -> None:
        """Note the cost of the replies of ``count`` clients; raise UserError for a request that cannot pass."""

    def open(self, request: Request, reply: Reply) -> None:
        """Decode the reduced replies in place."""


class HostStage(Checkpointable):
    """The clients' side of a stage, on a host."""

    def up(self, request: Request, batch: ClientBatch, new: Any, reply: Any) -> tuple[Any, Any]:
        """Return the new state and the reply of clients, transformed on their way to the server."""
        return new, reply

    def then(self, request: Request) -> Callable[..., Array] | None:
        """Return the server's function of rows, by column, if this stage has put one into the request."""
        return None

    def reductions(self, own: Array) -> dict[str, Reduction]:
        """Return reductions of replies, by name, that this stage adds to a host with the clients ``own``."""
        return {}


class UploadWeighting(HostStage):
    """A stage that multiplies uploads by weights (c,) of the clients, which travel with the request."""

    # Weights are known without the data; the selection that computes them has its own promises.
    supports = Supports.EVERYTHING

    def up(self, request: Request, batch: ClientBatch, new: Any, reply: Any) -> tuple[Any, Any]:
        weights = request.stages[WEIGHTED]
        if reply is None or weights is None or request.to is None:
            return new, reply
        return new, scale_rows(split_reply(reply)[0], weights[request.to.searchsorted(batch.f.ids)])


def scale_rows(parts: tuple[Array, ...], weights: Array) -> tuple[Array, ...]:
    """Multiply arrays (c, …) of c clients by the weights (c,)."""
    return tuple([part * weights.reshape(-1, *[1] * (part.ndim - 1)).astype(part.dtype) for part in parts])
