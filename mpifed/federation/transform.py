"""Transforms of messages and of the server's state: what plug-ins change between a method and its clients."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import msgspec
import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.promises import NO_REASONS, NOTHING_SUPPORTED, Reasons, Supports
from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.federation.local_transform import LocalTransform
from mpifed.federation.method import ServerState
from mpifed.federation.request import ARRIVE, FOR_THE_RECORD, SCORES, Reply, Request, join_reply, split_reply
from mpifed.federation.sums import Reduction

WEIGHTED = "weighted"
HOME = "home"  # the transform of parameters that stay with the clients: the others see what travels alone


class MessageCost(msgspec.Struct):
    """The cost of the messages of a request; ``charge`` is the option of the call, None if it has none."""

    charge: bool | None = None
    bits: int | None = None  # of one client's compressed reply
    down: tuple[int, int] | None = None  # (bits of the compressed shared arrays, number of receivers)
    masked_bytes: tuple[int, int] | None = None  # (bytes up, further bytes down) of all masked replies together
    averaged: bool = False  # whether the server divides the sum of replies by their number


class ClientBatch(NamedTuple):
    """Clients of one block in a request, at ``picks`` in the host's arrays, with the ``state`` before it.

    >>> class Signs(mpifed.extend.Transform):
    ...     def encode_array(self, batch: mpifed.extend.ClientBatch, name, rows):
    ...         assert len(batch.f) == len(rows)
    ...         return np.sign(rows)
    """

    f: Local
    picks: slice | Array
    state: Any


class ClientRows(dict[str, Array]):
    """Arrays by name with a row for each of the ``count`` clients of a host, in the order of its blocks."""

    count = 0

    def at(self, batch: ClientBatch, name: str, like: Array) -> Array:
        """Return the rows (c, …) of the clients of a batch; before the first ``put`` they are 0 and have this form."""
        if name not in self:
            self[name] = np.zeros((self.count, *like.shape[1:]), like.dtype)
        return self[name][batch.picks]

    def put(self, batch: ClientBatch, name: str, rows: Array) -> None:
        """Store the rows (c, …) of the clients of a batch."""
        if name not in self:
            self[name] = np.zeros((self.count, *rows.shape[1:]), rows.dtype)
        self[name][batch.picks] = rows


class Transform:
    """A change of messages between server and clients, with both ends in one class.

    The server's end puts into each request that it ``applies`` to, in ``begin``, the name of the transform. For such a
    request the clients' end changes uploads, in ``encode``, on their way to the server, whose end notes what they cost,
    in ``charge``, and changes what they add up to, in ``decode``. Methods that it does not override change nothing.

    Server and hosts have an object of their own each. What one keeps for the next request is in ``server_state`` or
    ``client_state``: arrays by name, which checkpoints save and restore.

        >>> class Halves(mpifed.extend.Transform):
        ...     def encode_array(self, batch, name, rows):
        ...         return rows.astype("float16").astype(rows.dtype)
        ...     def bits(self, shapes):
        ...         return 16 * sum(math.prod(shape) for shape in shapes)
        >>> class HalfPrecision(mpifed.extend.Plugin):
        ...     def transforms(self, setup, fed):
        ...         return [Halves()]
    """

    supports: ClassVar[Supports] = NOTHING_SUPPORTED
    unsupported: ClassVar[Reasons] = NO_REASONS
    name: ClassVar[str] = ""  # in requests and checkpoints; by default that of the class

    def __init_subclass__(cls) -> None:
        if "name" not in vars(cls):
            cls.name = cls.__name__

    @cached_property
    def server_state(self) -> dict[str, Array]:
        """Arrays by name that the server's end keeps."""
        return {}

    @cached_property
    def client_state(self) -> ClientRows:
        """Arrays by name that the clients' end keeps, a row for each client."""
        return ClientRows()

    def applies(self, request: Request, cost: MessageCost) -> bool:
        """Return whether the uploads of a request are changed: by default those of rounds, except what is free."""
        return self.concerns(request, cost) and request.request_type != ARRIVE

    def concerns(self, request: Request, cost: MessageCost) -> bool:
        """Return whether a request brings uploads that the transform changes, now or when they were computed."""
        return carries_uploads(request, cost)

    def begin(self, request: Request, cost: MessageCost) -> None:
        """Mark a request to which the transform applies, and change its arrays, before the server sends it."""
        if self.applies(request, cost):
            self.mark(request)

    def mark(self, request: Request, data: Array | None = None, first: bool = False) -> None:
        """Put the transform into a request after the others, or ``first``, with ``data`` for the clients' end."""
        others = request.transforms
        inner = {name: others[name] for name in others if name == HOME}
        request.transforms = {**inner, self.name: data, **others} if first else {**others, self.name: data}

    def receive(self, request: Request, batch: ClientBatch, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the shared arguments of a client method as the clients of a batch get them."""
        return args

    def encode(self, request: Request, batch: ClientBatch, new: Any, upload: Any) -> tuple[Any, Any]:
        """Return the new state and the upload of the clients of a batch, as the server receives it.

        By default each of its arrays goes through ``encode_array``, but for single numbers.
        """
        if upload is None:
            return new, upload
        arrays = split_reply(upload)[0]
        encoded = [
            self.encode_array(batch, f"{request.method} {k}", array) if array.ndim > 1 else array
            for k, array in enumerate(arrays)
        ]
        for before, after in zip(arrays, encoded, strict=True):
            if after.shape != before.shape:  # the server would add up other numbers
                raise UserError(f"{self.name} makes an upload of shape {after.shape} of one of shape {before.shape}")
        return new, join_reply(upload, tuple(encoded))

    def encode_array(self, batch: ClientBatch, name: str, rows: Array) -> Array:
        """Return an array (c, …) of uploads as the server receives it; ``name`` tells the arrays of a run apart."""
        return rows

    def bits(self, shapes: Sequence[tuple[int, ...]]) -> int | None:
        """Return the bits of one client's upload of arrays of these shapes; None: as they are, of full precision."""
        return None

    def charge(self, request: Request, reply: Reply, count: int, cost: MessageCost) -> None:
        """Note the cost of the uploads of ``count`` clients; raise UserError for a request that cannot be changed."""
        if cost.bits is None and reply.layout is not None and reply.layout.shapes and self.concerns(request, cost):
            cost.bits = self.bits(reply.layout.shapes)

    def decode(self, request: Request, reply: Reply) -> None:
        """Change the rows of a reply in place: uploads of single clients, or their sum."""

    def then(self, request: Request) -> Callable[..., Array] | None:
        """Return the server's function of rows, by column, if the transform has put one into the request."""
        return None

    def reductions(self, ids: Array) -> dict[str, Reduction]:
        """Return reductions of uploads, by name, that the transform adds to a host of the clients ``ids``."""
        return {}


class ServerTransform:
    """A change of the server's state after a round, and of the evaluated sums; by default it changes nothing.

    >>> class Halved(mpifed.extend.ServerTransform):
    ...     def transform_state(self, server):
    ...         return server._replace(x=server.x / 2)
    """

    def transform_state(self, server: ServerState) -> ServerState:
        """Return the server's state as it is recorded and as the next round gets it."""
        return server

    def transform_sums(self, x: Array, sums: dict[str, Array]) -> dict[str, Array]:
        """Return the evaluated sums over all clients at the model x (n,), by name."""
        return sums


AnyTransform = Transform | LocalTransform | ServerTransform


class UploadWeighting(Transform):
    """A transform that multiplies uploads by weights (c,) of the clients, which travel with the request."""

    # Weights are known without the data; the selection that computes them has its own promises.
    supports = Supports.EVERYTHING
    name = WEIGHTED

    def encode(self, request: Request, batch: ClientBatch, new: Any, upload: Any) -> tuple[Any, Any]:
        weights = request.transforms[WEIGHTED]
        if upload is None or weights is None or request.to is None:
            return new, upload
        return new, scale_upload(upload, weights[request.to.searchsorted(batch.f.ids)])


def carries_uploads(request: Request, cost: MessageCost) -> bool:
    """Return whether a request brings uploads of a round: no evaluations, scores, maxima or what costs nothing."""
    is_free = request.request_type in FOR_THE_RECORD or cost.charge is False
    return request.key[0] > 0 and not (is_free or request.reduce == "max" or request.method in SCORES)


def scale_upload(upload: Any, weights: Array) -> Any:
    """Multiply the arrays (c, …) of the upload of c clients by the weights (c,)."""
    arrays = split_reply(upload)[0]
    scaled = [part * weights.reshape(-1, *[1] * (part.ndim - 1)).astype(part.dtype) for part in arrays]
    return join_reply(upload, tuple(scaled))


def export_states(transforms: Sequence[Transform], end: str) -> dict[str, Array]:
    """Return the arrays that transforms keep at the ``end`` "server" or "client", under names with a blank."""
    return {
        f"{transform.name} {name}": array
        for transform in transforms
        for name, array in getattr(transform, f"{end}_state").items()
    }


def restore_states(transforms: Sequence[Transform], end: str, arrays: dict[str, Array]) -> None:
    """Restore what ``export_states`` returned, and remove it from the arrays of a checkpoint."""
    for transform in transforms:
        prefix = f"{transform.name} "
        state = getattr(transform, f"{end}_state")
        for name in [name for name in arrays if name.startswith(prefix)]:
            state[name.removeprefix(prefix)] = arrays.pop(name)
