"""Transforms of [personal]: messages without the parameters that stay with the clients, and ‖∇F‖² with them."""

from typing import Any

import numpy as np

from mpifed.core.promises import Supports
from mpifed.core.typing import Array
from mpifed.federation.request import (
    CALL,
    EVALUATE,
    EVALUATE_SUMS,
    SCORES,
    Reply,
    ReplyLayout,
    Request,
    entry_count,
    is_charged,
    join_reply,
    make_read_only,
    split_reply,
)
from mpifed.federation.setup import RunSpec
from mpifed.federation.transform import HOME, ClientBatch, MessageCost, ServerTransform, Transform

GRADIENT = "gradient"
AT_HOME = "gradient_at_home"  # Σ ‖∇f_i‖² over the parameters at home


class PartsAtHome(Transform):
    """Messages that lack the parameters ``home`` (n,) bool, of which each client keeps its own.

    A client joins what it receives with its own parameters, and keeps those that its method would upload. The server
    has zeros in their place. Fields (c, n) of a client's state keep their first values there: control variates and
    dual variables pull a client to the others, and what stays at home is its own.
    """

    # What travels is a part of what would travel, and the rest is in the state of clients that checkpoints save.
    supports = Supports.EVERYTHING & ~Supports.DEVICES
    name = HOME

    def __init__(self, setup: RunSpec, first: Array) -> None:
        assert setup.home is not None
        self.home, self.shared = setup.home, ~setup.home
        self.first = first  # (n_home,) parameters with which every client begins
        self.cut_shape = setup.shared_start.shape
        self.adds_changes = setup.algorithm.upload.content == "change"

    def begin(self, request: Request, cost: MessageCost) -> None:
        """Cut the models of calls and evaluations; clients that never train get them whole."""
        if request.request_type not in (CALL, EVALUATE):
            return
        self.mark(request, first=True)
        request.args = tuple(
            [a[self.shared] if is_charged(a) and a.shape == self.home.shape else a for a in request.args]
        )

    def receive(self, request: Request, batch: ClientBatch, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Join the first vector, the model, with each client's parameters, (c, n), and others with zeros, (n,)."""
        joined = list(args)
        cut = [k for k, a in enumerate(args) if is_charged(a) and a.shape == self.cut_shape]
        for k in cut:
            rows = np.zeros((len(batch.f), *self.home.shape) if k == cut[0] else self.home.shape, args[k].dtype)
            rows[..., self.shared] = args[k]
            if k == cut[0]:
                rows[:, self.home] = self.kept_rows()[batch.picks]
            joined[k] = make_read_only(rows)
        return tuple(joined)

    def kept_rows(self) -> Array:
        """Return the parameters that stay with the clients of this host: (clients, n_home)."""
        if HOME not in self.client_state:
            self.client_state[HOME] = np.tile(self.first, (self.client_state.count, 1))
        return self.client_state[HOME]

    def encode(self, request: Request, batch: ClientBatch, new: Any, upload: Any) -> tuple[Any, Any]:
        """Keep the clients' parameters, and return the state and the upload without them."""
        if request.request_type == EVALUATE:
            return new, self.split_gradient(upload) if request.method == EVALUATE_SUMS else upload
        if upload is None or request.reduce == "max" or request.method in SCORES:
            return new, upload
        parts = split_reply(upload)[0]
        vectors = [part for part in parts if part.shape[1:] == self.home.shape]
        if vectors:
            kept = self.kept_rows()
            rows = vectors[0][:, self.home]
            kept[batch.picks] = kept[batch.picks] + rows if self.adds_changes else rows
        cut = [part[:, self.shared] if part.shape[1:] == self.home.shape else part for part in parts]
        return self.restore_state(batch.state, new), join_reply(upload, tuple(cut))

    def restore_state(self, before: Any, new: Any) -> Any:
        """Return the new state of clients with the fields (c, n) as ``before`` where parameters stay at home."""
        fields = {}
        for name, old, field in zip(new._fields, before, new, strict=True):
            if field is not old and field.shape[1:] == self.home.shape:
                fields[name] = np.where(self.home, old, field)
        return new._replace(**fields)

    def split_gradient(self, sums: dict[str, Array]) -> dict[str, Array]:
        """Return evaluated sums with ∇f_i of what travels, and ‖∇f_i‖² of the rest: (c,)."""
        gradient = sums[GRADIENT]
        own = gradient[:, self.home]
        return sums | {GRADIENT: gradient[:, self.shared], AT_HOME: np.vecdot(own, own)}

    def decode(self, request: Request, reply: Reply) -> None:
        """Put zeros where uploads have been cut."""
        layout = reply.layout
        if request.request_type != CALL or layout is None or self.cut_shape not in layout.shapes:
            return
        front = reply.rows.shape[:-1]
        columns = []
        column = 0
        for shape in layout.shapes:
            part = reply.rows[..., column : column + entry_count(shape)]
            column += entry_count(shape)
            if shape == self.cut_shape:
                expanded = np.zeros((*front, *self.home.shape), part.dtype)
                expanded[..., self.shared] = part
                part = expanded
            columns.append(part)
        reply.rows = np.concatenate(columns, axis=-1)
        shapes = tuple([self.home.shape if shape == self.cut_shape else shape for shape in layout.shapes])
        reply.layout = ReplyLayout(shapes, layout.names)


class JoinedGradient(ServerTransform):
    """The norm of the gradient of F(s, h_1 … h_m) = (1/m) Σ f_i(s, h_i), by the shared s and all h_i."""

    def transform_sums(self, x: Array, sums: dict[str, Array]) -> dict[str, Array]:
        """Return sums whose gradient has one more number for the h_i, so that its norm is that of m∇F."""
        gradient = np.append(sums[GRADIENT], np.sqrt(sums[AT_HOME]))
        return {name: value for name, value in sums.items() if name != AT_HOME} | {GRADIENT: gradient}
