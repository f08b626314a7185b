"""What messages between server and clients may pass on their way."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import msgspec

from mpifed.core.promises import NO_REASONS, NOTHING_KEPT, Keeps, Reasons
from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.federation.request import Reply, Request, parts_of
from mpifed.federation.sums import Reduction

WEIGHTED = "weighted"
RESTING = "resting "  # how names in checkpoints begin of what clients have computed ahead …
FIELD = "field "  # … and among them of fields of their state


class Postage(msgspec.Struct):
    """What the messages of a request cost; ``charge`` is what the call says of it, None where it says nothing."""

    charge: bool | None = None
    bits: int | None = None  # of one client's reply, where that is a compressed message
    down: tuple[int, int] | None = None  # bits of the shared arrays and who receives them, where they are compressed
    masked: tuple[int, int] | None = None  # bytes up and further bytes down of all replies together, under masks
    averaged: bool = False  # whether the server divides the sum of replies by their number


class Visit(NamedTuple):
    """Clients of a host at work: ``picks`` are their places in the host's arrays, ``state`` is what they had."""

    f: Local
    picks: slice | Array
    state: Any


class Keeper:
    """What has a state of its own beside that of the method; by default it has none."""

    keeps: ClassVar[Keeps] = NOTHING_KEPT
    unkept: ClassVar[Reasons] = NO_REASONS

    def saved(self) -> dict[str, Array]:
        """What a checkpoint keeps, on hosts of the clients in block order: arrays with a blank in their names."""
        return {}

    def restore(self, arrays: dict[str, Array]) -> None:
        """Take back what ``saved`` put among the arrays of a checkpoint, on hosts out of them."""


class ServerStage(Keeper):
    """The server's side of a stage."""

    def down(self, request: Request, postage: Postage) -> None:
        """Put what the hosts need to know into ``stages`` of a request on its way, or change its arrays."""

    def cost(self, request: Request, reply: Reply, count: int, postage: Postage) -> None:
        """Note what the replies of ``count`` clients cost. UserError for a request that cannot pass."""

    def open(self, request: Request, reply: Reply) -> None:
        """Turn the reduced replies into what they stand for."""


class HostStage(Keeper):
    """The side of the clients of a host."""

    def up(self, request: Request, visit: Visit, new: Any, reply: Any) -> tuple[Any, Any]:
        """The new state and the reply of clients as they become on their way."""
        return new, reply

    def then(self, request: Request) -> Callable[..., Array] | None:
        """The server's function of rows of this request, by column, where this stage has put one into it."""
        return None

    def reductions(self, own: Array) -> dict[str, Reduction]:
        """Reductions of replies that hosts with the clients ``own`` do not have without this stage."""
        return {}


class Weighted(HostStage):
    """Uploads are multiplied with the weights (c,) of the clients called, which travel with the request."""

    # Weights are known without the data; the selection that they come from speaks for itself.
    keeps = Keeps.EVERYTHING

    def up(self, request: Request, visit: Visit, new: Any, reply: Any) -> tuple[Any, Any]:
        weights = request.stages[WEIGHTED]
        if reply is None or weights is None or request.to is None:
            return new, reply
        return new, times(parts_of(reply)[0], weights[request.to.searchsorted(visit.f.ids)])


def times(parts: tuple[Array, ...], weights: Array) -> tuple[Array, ...]:
    """Arrays (c, …) of c clients, multiplied with the weights (c,)."""
    return tuple([part * weights.reshape(-1, *[1] * (part.ndim - 1)).astype(part.dtype) for part in parts])
