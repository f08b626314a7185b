"""Transform of [privacy]: clients clip what they upload, and the server makes a noisy mean of the sum."""

import math
from typing import Any, NamedTuple, NoReturn

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.promises import Supports
from mpifed.core.streams import stream
from mpifed.core.typing import Array
from mpifed.features.privacy.mechanisms import Release, SumSizes, draw_half_steps
from mpifed.features.privacy.private_means import LARGEST_BOUND, LEAST_BOUND, PrivateMeans
from mpifed.federation.request import (
    EVALUATE,
    FOR_THE_RECORD,
    SCORES,
    Reply,
    ReplyLayout,
    Request,
    entry_count,
    join_reply,
    split_reply,
)
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec
from mpifed.federation.transform import ClientBatch, MessageCost, Transform

CLIP = "clip"  # names in the server's state: of the bound C
TURNS = "turns"  # and of the last round of each client (m,), where rounds share noise
ROUNDING = 1e-9  # bounds are so much smaller that rounding errors of a norm make no vector longer
Slices = tuple[slice, ...]


class Noise(NamedTuple):
    """The noise of a run: the multiplier of the changes, σ of the count, and the denominators of sums."""

    multiplier: float
    counting: float
    weight: float  # what the weights of a round's clients are expected to add up to
    clients: float  # how many clients are expected


class ClippedSums(Transform):
    """Clipped uploads at the clients, and at the server their noisy mean in place of their sum.

    The request brings the bound C and the step of the grid. It must be the one mean of its round, over the clients
    selected: what else would leave clients, or leave them twice, is refused.
    """

    # Whatever clients compute, what they send is clipped; bits are those of the noise (its seed, or none).
    supports = Supports.EVERYTHING & ~Supports.DEVICES
    name = "privacy"

    def __init__(self, setup: RunSpec, table: PrivateMeans, layers: Slices = ()) -> None:
        self.setup = setup
        self.table = table
        self.layers = layers
        factors = setup.client_weights
        limit = math.inf if table.max_weight is None else table.max_weight
        self.weights = None if factors is None else np.minimum(factors, limit)
        self.heaviest = 1.0 if self.weights is None else float(self.weights.max())
        self.noise = Noise(0.0, 0.0, 1.0, 1.0)
        self.fed: Federation  # at the server
        self.sizes = SumSizes(0, 1, 1)
        self.released = -1  # the round of the last mean
        self.origin: tuple[Request | None, Array | None] = (None, None)  # the last request, and its model

    def serve(self, noise: Noise, fed: Federation, sizes: SumSizes) -> None:
        """Make this the server's end, with the noise of the run and the sizes of its sums."""
        self.noise = noise
        self.fed = fed
        self.sizes = sizes

    @property
    def bound(self) -> float:
        """The bound C of this round."""
        return float(self.server_state.get(CLIP, np.asarray(self.table.clip)))

    def release(self, key: tuple[int, int]) -> Release:
        """Return the sum of a request, its noise drawn from the stream of its ``key`` if there is a seed."""
        longest = self.bound * self.heaviest
        seed = self.table.noise_seed
        rng = None if seed is None else stream(seed, "noise", *key)
        shared = int(stream(self.setup.seed, "privacy", *key).integers(2**53))
        return Release(longest, self.noise.multiplier * longest, rng, shared, key[0], self.server_state)

    def begin(self, request: Request, cost: MessageCost) -> None:
        """Mark the mean of a round; raise UserError for other requests that bring what clients computed."""
        if request.request_type in FOR_THE_RECORD:
            if request.request_type == EVALUATE and self.fed.is_playing and self.table.guarantee().holds:
                self.refuse_method(f"it asks clients for {request.method} by fed.inspect, past clipping and noise")
            return
        # selections by scores are refused where something is guaranteed: the name alone exempts no method from that
        if request.method in SCORES and not self.table.guarantee().holds:
            return
        self.refuse(request, cost)
        self.check_turns(request)
        self.released = request.key[0]
        release = self.release(request.key)
        plan = self.table.mechanism.plan(release, self.sizes, self.setup.start.dtype)
        self.mark(request, np.array([self.bound, *plan]))

    def refuse(self, request: Request, cost: MessageCost) -> None:
        """Raise UserError for a request that is not the one mean of a round over its selected clients."""
        schedule = self.fed.schedule
        if request.key[0] == 0:
            self.refuse_method(f"it asks clients for {request.method} before round one, which no noise covers")
        if request.reduce not in ("sum", "plain sum") or request.last is not None or not cost.averaged:
            self.refuse_method(f"what it asks for with {request.method} is no mean over the clients of a round")
        twice = schedule.again > 1 and self.table.mechanism.span > 1  # the second is that of another round
        if not schedule.again or twice or request.to is not schedule.selected:
            self.refuse_method(f"it asks others than the selected clients for {request.method}")
        if request.count(self.setup.m) < self.sizes.fewest:
            raise UserError(
                f"privacy cannot be used here: {request.count(self.setup.m)} clients reply in round {request.key[0]}, "
                f"and the noise is sized for {self.sizes.fewest}"
            )
        if self.released == request.key[0]:
            self.refuse_method("its rounds take more than one mean, and ε counts one a round")

    def refuse_method(self, why: str) -> NoReturn:
        """Raise UserError for what the method of the study does."""
        raise UserError(f"privacy cannot be used with {self.setup.algorithm.label()}: {why}")

    def check_turns(self, request: Request) -> None:
        """Raise UserError where a client comes back in rounds that share noise, whatever its selection claims."""
        span = self.table.mechanism.span
        if span == 1:
            return
        before = self.server_state.setdefault(TURNS, np.full(self.setup.m, -span))
        selected = slice(None) if request.to is None else request.to
        if (early := np.flatnonzero(request.key[0] - before[selected] < span)).size:
            client = int(early[0]) if request.to is None else int(request.to[early[0]])
            raise UserError(
                f"selection is wrong: it selects client {client} in rounds {before[client]} and {request.key[0]}, and "
                f'with privacy.mechanism = "{self.table.mechanism.label()}" these must be {span} apart'
            )
        before[selected] = request.key[0]

    def encode(self, request: Request, batch: ClientBatch, new: Any, upload: Any) -> tuple[Any, Any]:
        parts, names = split_reply(upload)
        if min([part.ndim for part in parts]) < 2:
            self.refuse_method(
                f"{request.method} uploads single numbers beside its vectors, and the bound is one of vectors"
            )
        data = request.transforms[self.name]
        assert data is not None
        plan = data[1:]
        rows = self.join_changes(request, parts)
        scale, size = self.shorten(rows, float(data[0]), bool(plan[0]))
        if self.weights is not None:
            scale = scale * self.weights[batch.f.ids][:, None]
        numbers = rows.shape[1]
        rows = self.table.mechanism.protect(batch, rows, scale, plan, self.table.noise_seed)
        rows = rows.astype(parts[0].dtype, copy=False)
        sent = cut_rows(rows, [part.shape[1:] for part in parts])
        more = {}
        if self.table.mechanism.under_masks:
            more["padding"] = rows[:, numbers:]
        if self.table.quantile is not None:
            more["fits"] = (size <= data[0]).astype(parts[0].dtype) - 0.5
        if not more:
            return new, join_reply(upload, sent)
        sent = (*sent, *more.values())
        return new, dict(zip((*names, *more), sent, strict=True)) if names else sent

    def join_changes(self, request: Request, parts: tuple[Array, ...]) -> Array:
        """Return the changes of the model that clients upload as one vector each: (c, N), in double precision."""
        if self.origin[0] is not request:  # of all blocks
            self.origin = request, self.find_origin(request, parts)
        x = self.origin[1]
        if x is not None:
            rows = parts[0] - x
        else:
            rows = np.concatenate(
                [part.reshape(len(part), -1) for part in parts], axis=1
            )  # what the method returned stays
        # rows in one piece, whatever the uploads are: the last bit of a norm depends on how a row lies in memory
        return rows.astype(np.float64, order="C", copy=False)

    def find_origin(self, request: Request, parts: tuple[Array, ...] = ()) -> Array | None:
        """Return the model (n,) that clients of a request get and upload anew; None if they upload changes."""
        if self.setup.algorithm.upload.content == "change":
            return None
        shape = self.setup.shared_start.shape
        x = request.find_model(shape)
        if x is None or len(parts) > 1 or any(part.shape[1:] != shape for part in parts):
            self.refuse_method(f"{request.method} uploads no change of one model that clients were sent")
        return x

    def shorten(self, rows: Array, bound: float, exactly: bool) -> tuple[Array, Array]:
        """Return factors (c, 1), or (c, N) by layer, that make rows (c, N) short enough, and their lengths (c,)."""
        longest = bound * (1 - ROUNDING) if exactly else bound
        squares = np.vecdot(rows, rows)
        # a row that is not finite cannot be shortened, and sent as it is would reveal that this client diverged
        if not squares.max() < math.inf:
            bad = ~np.isfinite(squares)
            rows[bad] = 0.0
            squares[bad] = 0.0
        size = np.sqrt(squares)
        if not self.layers:
            return (longest / np.maximum(size, longest))[:, None], size
        scale = np.empty_like(rows)
        count = len(self.layers) * (rows.shape[1] // self.setup.shared_start.size)
        for k in range(0, rows.shape[1], self.setup.shared_start.size):
            for layer in self.layers:
                part = rows[:, k + layer.start : k + layer.stop]
                least = np.maximum(np.sqrt(np.vecdot(part, part)), longest / math.sqrt(count))
                scale[:, k + layer.start : k + layer.stop] = (longest / math.sqrt(count) / least)[:, None]
        return scale, size

    def decode(self, request: Request, reply: Reply) -> None:
        """Replace the sum of clipped changes by the mean that the method asked for; move the bound."""
        data = request.transforms.get(self.name)
        if data is None:
            return
        layout = self.find_layout(request, reply)
        total = reply.rows.reshape(-1).astype(np.float64)
        numbers = sum(entry_count(shape) for shape in layout.shapes)
        if not len(total):  # nobody was selected
            total = np.zeros(numbers + self.extra)
        release = self.release(request.key)
        counted = total[: len(total) - (self.table.quantile is not None)]
        mean = self.table.mechanism.add_noise(counted, release, data[1:], numbers) / self.noise.weight
        x = self.find_origin(request)
        reply.rows = (mean if x is None else x + mean).astype(reply.rows.dtype)
        reply.layout = layout
        reply.count = 1  # a mean over one, by which the server divides
        if self.table.quantile is not None:
            self.move_bound(total[-1], release.rng)

    def find_layout(self, request: Request, reply: Reply) -> ReplyLayout:
        """Return the layout of what the method uploads, also of a round in which nobody was selected."""
        if reply.layout is None or not reply.layout.shapes:
            return ReplyLayout((self.setup.shared_start.shape,) * self.setup.algorithm.upload.vectors)
        if not self.extra:
            return reply.layout
        return ReplyLayout(reply.layout.shapes[:-1], reply.layout.names[:-1])

    @property
    def extra(self) -> int:
        """The number of arrays that clients send beside what the method uploads: padding, or whether they fit."""
        return int(self.table.mechanism.under_masks or self.table.quantile is not None)

    def move_bound(self, count: float, rng: np.random.Generator | None) -> None:
        """Move the bound by the clients that it fits, counted less one half each, with noise."""
        assert self.table.quantile is not None
        share = 0.5 + (count + draw_half_steps(self.noise.counting, rng)) / self.noise.clients
        factor = math.exp(-self.table.clip_rate * (share - self.table.quantile))
        self.server_state[CLIP] = np.asarray(min(max(self.bound * factor, LEAST_BOUND), LARGEST_BOUND))


def cut_rows(rows: Array, shapes: list[tuple[int, ...]]) -> tuple[Array, ...]:
    """Return the arrays (c, …) of these shapes that the vectors of clients (c, N) are made of."""
    if len(shapes) == 1 and shapes[0] == rows.shape[1:]:
        return (rows,)
    parts = []
    end = 0
    for shape in shapes:
        start = end
        end += entry_count(shape)
        parts.append(rows[:, start:end].reshape(len(rows), *shape))
    return tuple(parts)
