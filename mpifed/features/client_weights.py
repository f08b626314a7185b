"""Feature of weights p_i of clients, f = Σ p_i f_i in place of (1/m) Σ f_i.

Most methods are given f_i' = m p_i f_i, whose plain mean is f, so that all they compute is exact for f. Methods that
average models (``Upload.averaged``) keep f_i in their local steps; the server's means of uploads have the weights.
"""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.promises import Reasons, Supports
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.features.conflicts import CONFLICTS
from mpifed.features.feature import Plugin
from mpifed.federation.local_transform import LocalClients, LocalTransform
from mpifed.federation.request import FOR_THE_RECORD, Reply, Request
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec
from mpifed.federation.sums import ROW_REDUCTIONS, Reduction, find_subtrees, sum_subtrees
from mpifed.federation.transform import ClientBatch, MessageCost, Transform, scale_upload


class WeightedObjectives(LocalTransform):
    """Local transform: f_i' = m p_i f_i in place of f_i.

    ``every`` (m,) are the m p_i of all clients; ``per_sample`` is m/d where weights are by samples, else 0.
    """

    def __init__(self, every: Array, per_sample: float) -> None:
        self.every = every
        # m p_i = m d_i/d: an inverse that a block keeps for all its clients needs them without the clients' numbers
        self.by_block = lambda block: per_sample * block.d

    def factors(self, f: LocalClients) -> Array:
        factors: Array = f.xp.asarray(self.every[f.ids])
        return factors


def scale_weights(weights: Any, sizes: Array) -> Array:
    """Return m p_i (m,) for the weights "samples" or for numbers."""
    if isinstance(weights, str):
        return len(sizes) * sizes / sizes.sum()
    numbers = np.asarray(weights, float)
    return len(numbers) * numbers / numbers.sum()


class WeightedAverages(Transform):
    """Transform of means over the clients called: Σ p_i u_i / Σ p_i, with the ``factors`` m p_i (m,).

    Clients multiply uploads, or last uploads in sums of these, by their factors.
    """

    # Noise is sized for uploads without weights: no privacy.
    supports = Supports.REPEATED | Supports.DEVICES
    name = "averages"

    def __init__(self, factors: Array) -> None:
        self.factors = factors

    def begin(self, request: Request, cost: MessageCost) -> None:
        if request.request_type not in FOR_THE_RECORD and request.reduce in ("sum", "plain sum"):
            self.mark(request)

    def encode(self, request: Request, batch: ClientBatch, new: Any, upload: Any) -> tuple[Any, Any]:
        # sums of last uploads include clients that are not called: there the reduction multiplies by the factors
        if upload is None or request.last is not None:
            return new, upload
        return new, scale_upload(upload, self.factors[batch.f.ids])

    def reductions(self, ids: Array) -> dict[str, Reduction]:
        own = ids
        lo = int(own[0])
        tree = find_subtrees(lo, int(own[-1]) + 1, len(self.factors))
        plain = ROW_REDUCTIONS | {"sum": lambda request, rows, ids: sum_subtrees(rows, ids, lo, tree)}

        def add_weighted(request: Request, rows: Array, ids: Array | None) -> Array:
            if request.last is not None and self.name in request.transforms:
                rows = rows * self.factors[own if ids is None else ids, None].astype(rows.dtype)
            return plain[request.reduce](request, rows, ids)

        return dict.fromkeys(("sum", "plain sum"), add_weighted)

    def decode(self, request: Request, reply: Reply) -> None:
        # a mean divides by the number of clients, c: Σ m p_i u_i times c/Σ m p_i; over all clients Σ m p_i is m already
        if self.name in request.transforms and request.last is None and request.to is not None:
            factors = self.factors[request.to]
            reply.rows = reply.rows * reply.rows.dtype.type(len(factors) / factors.sum())


class ClientWeights(Plugin):
    """Weights p_i of the clients' f_i."""

    # Uploads are multiplied, and their noise was sized without that.
    supports = Supports.EVERYTHING & ~Supports.PRIVACY
    unsupported: ClassVar[Reasons] = {
        Supports.PRIVACY: 'the noise of {name} is that of uploads without weights, so it must be "clients"'
    }

    conflicts = CONFLICTS["client_weights"]

    factors: Array  # (m,) m p_i
    local: WeightedObjectives

    def prepare(self, setup: RunSpec, data: Dataset) -> RunSpec:
        """Compute the weights; raise UserError where their number is not that of clients."""
        weights = self.config.objective.weights
        user_weights = weights if data.client_weights is None else data.client_weights
        sizes = data.totals
        if not isinstance(user_weights, str) and len(user_weights) != setup.m:
            raise UserError(
                f"objective.weights has {len(user_weights)} numbers, and there are {setup.m} clients: it must have one "
                "for each"
            )
        per_sample = setup.m / np.sum(sizes).item() if weights == "samples" else 0.0
        self.factors = scale_weights(user_weights, sizes)
        self.local = WeightedObjectives(self.factors.astype(setup.start.dtype), per_sample)
        if self.config.algorithm.upload.averaged:
            # clients train on f_i without weights; means of their models and the recorded f have the weights
            self.local.evaluation_only = True
            setup = setup._replace(client_weights=self.factors)
        return setup

    def transforms(self, setup: RunSpec, fed: Federation | None) -> Sequence[Transform | LocalTransform]:
        # private means weigh clipped uploads themselves
        averages = self.local.evaluation_only and self.config.privacy is None
        return [self.local, WeightedAverages(self.factors)] if averages else [self.local]


def get_client_weights(features: Iterable[Plugin], m: int) -> Array:
    """Return m p_i of the m clients of a study: (m,)."""
    return next((one.factors for one in features if isinstance(one, ClientWeights)), np.ones(m))
