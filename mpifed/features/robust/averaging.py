"""Robust means of uploads, computed by the server alone or by each rank for some columns."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.features.attack.attacks import Attack, average_rows
from mpifed.features.attack.changes import NOWHERE, brings_uploads, check_vectors, find_origin
from mpifed.features.robust.means import BITS_AND_RESUME, RobustMean
from mpifed.federation.calls import ClientCaller
from mpifed.federation.request import Reply, Request
from mpifed.federation.setup import RunSpec
from mpifed.federation.stage import WEIGHTED, ClientBatch, HostStage, MessageCost, ServerStage

ROWS = "rows"
BEFORE = "robust mean"  # its name in checkpoints


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

        # its name travels to the ranks, whose stage then has the same function for them
        def by_column(rows: Array, *args: Any) -> Array:
            return self.mean(request, rows)

        return by_column


class ServerRows(ServerStage):
    """Server's side: it replaces means of uploads by robust means of rows. ``before`` is the last mean."""

    # The last mean, which the next round reads, is in the checkpoint.
    supports = BITS_AND_RESUME

    def __init__(self, fed: ClientCaller, averaging: RobustAveraging) -> None:
        self.fed = fed
        self.setup = fed.setup
        self.averaging = averaging
        self.before = np.zeros_like(fed.setup.start)

    def down(self, request: Request, message_cost: MessageCost) -> None:
        """Ask for uploads as rows; raise UserError where a round takes more than a plain mean of uploads."""
        if not brings_uploads(request):
            return
        plain = message_cost.averaged and message_cost.charge is not False and WEIGHTED not in request.stages
        if not plain or request.last is not None:
            raise UserError(
                f"round of {self.setup.algorithm.label()} takes more than one plain mean of the uploads of "
                f"{request.method}, so neither robust nor an attack that is made jointly can be used with it: its "
                "upload must not say one_mean"
            )
        request.reduce = "rows"
        request.stages = {**request.stages, ROWS: None}
        if self.averaging.by_column:
            request.then = self.averaging.make_column_mean(request)

    def open(self, request: Request, reply: Reply) -> None:
        if ROWS not in request.stages:
            return
        if not self.averaging.by_column:
            self.before = reply.rows = self.averaging.mean(request, reply.rows, self.before)
        reply.rows = reply.rows + find_origin(request, self.setup)
        self.fed.count = 1  # fed.mean divides by it

    def export_state(self) -> dict[str, Array]:
        return {} if self.averaging.by_column else {BEFORE: self.before}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.before = arrays.get(BEFORE, self.before)


class HostRows(HostStage):
    """Clients' side: it turns uploads into changes."""

    # Each row is a function of the client's own upload.
    supports = BITS_AND_RESUME

    def __init__(self, setup: RunSpec, averaging: RobustAveraging) -> None:
        self.setup = setup
        self.averaging = averaging

    def up(self, request: Request, batch: ClientBatch, new: Any, reply: Any) -> tuple[Any, Any]:
        sent = check_vectors(reply, request, self.setup)
        x = find_origin(request, self.setup)
        # uploads that are changes already are not copied
        return new, sent if x is NOWHERE else sent - x

    def then(self, request: Request) -> Callable[..., Array]:
        return self.averaging.make_column_mean(request)
