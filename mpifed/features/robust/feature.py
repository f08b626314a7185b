"""Feature of [robust]: means of single uploads, by the server or by each rank for some columns, and joint attacks."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.features.attack.attacks import Attack, average_rows
from mpifed.features.attack.changes import NOWHERE, brings_uploads, check_vectors, find_origin
from mpifed.features.feature import Plugin
from mpifed.features.message_conflicts import MESSAGES
from mpifed.features.robust.means import BITS_AND_RESUME, RobustMean
from mpifed.federation.request import Reply, Request
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec
from mpifed.federation.transform import WEIGHTED, ClientBatch, MessageCost, Transform

LAST = "mean"  # the mean of the round before


class RobustAveraging:
    """Mean of the changes of a round, after attackers of ``bad`` (m,) have replaced theirs jointly."""

    def __init__(self, setup: RunSpec, robust: RobustMean | None, attack: Attack | None, bad: Array | None) -> None:
        self.setup = setup
        self.robust = robust
        self.attack = attack if attack is not None and attack.jointly else None
        self.bad = bad
        self.by_column = robust is None or robust.by_column

    def mean(self, request: Request, rows: Array, before: Array | float = 0.0) -> Array:
        """Return the mean (w,) of the rows (c, w) of the clients called; by column, of some of the columns."""
        uploads = len(rows)
        rows = self.apply_attack(request, rows)
        if self.robust is None:
            return average_rows(rows)
        rows = self.robust.average_buckets(rows, self.setup.seed, request.key)
        return self.robust.mean(rows, uploads, before).astype(rows.dtype, copy=False)

    def apply_attack(self, request: Request, rows: Array) -> Array:
        """Return the rows, with those of attackers replaced once they know the others' rows."""
        if self.attack is None or self.bad is None:
            return rows
        bad = self.bad if request.to is None else self.bad[request.to]
        if not bad.any():
            return rows
        honest = rows if bad.all() else rows[~bad]
        rows = rows.copy()
        rows[bad] = self.attack.together(honest, int(bad.sum()))
        return rows

    def make_column_mean(self, request: Request) -> Callable[..., Array]:
        """Return the function by which ranks make this mean of their columns."""

        # its name travels to the ranks, whose transform then has the same function for them
        def by_column(rows: Array, *args: Any) -> Array:
            return self.mean(request, rows)

        return by_column


class RobustRows(Transform):
    """Transform of means of uploads: clients send changes as rows, of which the server makes a robust mean.

    ``server_state`` has the last mean, where the next one depends on it.
    """

    # Each row is a function of the client's own upload; the last mean, which the next round reads, is in checkpoints.
    supports = BITS_AND_RESUME
    name = "robust"

    def __init__(self, setup: RunSpec, averaging: RobustAveraging) -> None:
        self.setup = setup
        self.averaging = averaging

    def begin(self, request: Request, cost: MessageCost) -> None:
        """Ask for uploads as rows; raise UserError where a round takes more than a plain mean of uploads."""
        if not brings_uploads(request):
            return
        plain = cost.averaged and cost.charge is not False and WEIGHTED not in request.transforms
        if not plain or request.last is not None:
            raise UserError(
                f"round of {self.setup.algorithm.label()} takes more than one plain mean of the uploads of "
                f"{request.method}, so neither robust nor an attack that is made jointly can be used with it: its "
                "upload must not say one_mean"
            )
        request.reduce = "rows"
        self.mark(request)
        if self.averaging.by_column:
            request.then = self.averaging.make_column_mean(request)

    def encode(self, request: Request, batch: ClientBatch, new: Any, upload: Any) -> tuple[Any, Any]:
        sent = check_vectors(upload, request, self.setup)
        x = find_origin(request, self.setup)
        # uploads that are changes already are not copied
        return new, sent if x is NOWHERE else sent - x

    def then(self, request: Request) -> Callable[..., Array]:
        return self.averaging.make_column_mean(request)

    def decode(self, request: Request, reply: Reply) -> None:
        if self.name not in request.transforms:
            return
        if not self.averaging.by_column:
            before = self.server_state.get(LAST, np.zeros_like(self.setup.shared_start))
            self.server_state[LAST] = reply.rows = self.averaging.mean(request, reply.rows, before)
        reply.rows = reply.rows + find_origin(request, self.setup)
        reply.count = 1  # fed.mean divides by it


class Robust(Plugin):
    """Mean that is made of single uploads."""

    # As the means themselves, which say so too.
    supports = BITS_AND_RESUME
    unsupported = RobustMean.unsupported
    conflicts = MESSAGES["robust"]

    bad: Array | None = None  # (m,) bool: who attacks

    def data(self, data: Dataset) -> Dataset:
        c = self.config
        self.bad = None if c.attack is None else c.attack.attackers(data.m, c.seed)
        return data

    def transforms(self, setup: RunSpec, fed: Federation | None) -> list[RobustRows]:
        return [RobustRows(setup, RobustAveraging(setup, self.config.robust, self.config.attack, self.bad))]
