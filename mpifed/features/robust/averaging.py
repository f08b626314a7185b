"""Uploads one by one: how a mean is made of them, where the server is alone or each rank has some columns."""

from collections.abc import Callable
from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.features.attack.attacks import Attack, mean_of
from mpifed.features.attack.changes import NOWHERE, origin, uploads, vectors
from mpifed.features.robust.means import BITS_AND_RESUME, RobustMean
from mpifed.federation.calls import Calls
from mpifed.federation.request import Reply, Request
from mpifed.federation.setup import Setup
from mpifed.federation.stage import WEIGHTED, HostStage, Postage, ServerStage, Visit

ROWS = "rows"
BEFORE = "robust mean"  # its name in checkpoints


class Averaging:
    """What becomes of the changes of a round: attackers of ``bad`` (m,) replace theirs jointly, then comes a mean."""

    def __init__(self, setup: Setup, robust: RobustMean | None, attack: Attack | None, bad: Array | None) -> None:
        self.setup = setup
        self.robust = robust
        self.attack = attack if attack is not None and attack.jointly else None
        self.bad = bad
        self.by_column = robust is None or robust.by_column

    def mean(self, request: Request, rows: Array, before: Array | float = 0.0) -> Array:
        """The mean (w,) of the rows (c, w) of the clients called, of all columns or, by column, of some."""
        uploads = len(rows)
        rows = self.attacked(request, rows)
        if self.robust is None:
            return mean_of(rows)
        rows = self.robust.bucketed(rows, self.setup.seed, request.key)
        return self.robust.mean(rows, uploads, before).astype(rows.dtype, copy=False)

    def attacked(self, request: Request, rows: Array) -> Array:
        """The rows as attackers replace theirs, once they know those of the others."""
        if self.attack is None or self.bad is None:
            return rows
        bad = self.bad if request.to is None else self.bad[request.to]
        if not bad.any():
            return rows
        honest = rows if bad.all() else rows[~bad]
        rows = rows.copy()
        rows[bad] = self.attack.together(honest, int(bad.sum()))
        return rows

    def columns(self, request: Request) -> Callable[..., Array]:
        """The function of rows by which ranks make this mean of their columns."""

        # its name travels to the ranks, whose stage then has the same function for them
        def by_column(rows: Array, *args: Any) -> Array:
            return self.mean(request, rows)

        return by_column


class ServerRows(ServerStage):
    """The server's side: where ``fed`` asks for a mean of uploads, it makes one of rows. ``before`` is the last one."""

    # What the next round reads is in the checkpoint.
    keeps = BITS_AND_RESUME

    def __init__(self, fed: Calls, averaging: Averaging) -> None:
        self.fed = fed
        self.setup = fed.setup
        self.averaging = averaging
        self.before = np.zeros_like(fed.setup.start)

    def down(self, request: Request, postage: Postage) -> None:
        """UserError where a round asks for more than a plain mean of uploads."""
        if not uploads(request):
            return
        plain = postage.averaged and postage.charge is not False and WEIGHTED not in request.stages
        if not plain or request.last is not None:
            raise UserError(
                f"round of {self.setup.algorithm.label()} takes more than one plain mean of the uploads of "
                f"{request.method}, so neither robust nor an attack that is made jointly can be used with it: its "
                "upload must not say one_mean"
            )
        request.reduce = "rows"
        request.stages = {**request.stages, ROWS: None}
        if self.averaging.by_column:
            request.then = self.averaging.columns(request)

    def open(self, request: Request, reply: Reply) -> None:
        if ROWS not in request.stages:
            return
        if not self.averaging.by_column:
            self.before = reply.rows = self.averaging.mean(request, reply.rows, self.before)
        reply.rows = reply.rows + origin(request, self.setup)
        self.fed.count = 1  # which that is divided by

    def saved(self) -> dict[str, Array]:
        return {} if self.averaging.by_column else {BEFORE: self.before}

    def restore(self, arrays: dict[str, Array]) -> None:
        self.before = arrays.get(BEFORE, self.before)


class HostRows(HostStage):
    """The side of the clients of a host: uploads leave it as changes."""

    # Each row is a function of the client's own upload.
    keeps = BITS_AND_RESUME

    def __init__(self, setup: Setup, averaging: Averaging) -> None:
        self.setup = setup
        self.averaging = averaging

    def up(self, request: Request, visit: Visit, new: Any, reply: Any) -> tuple[Any, Any]:
        sent = vectors(reply, request, self.setup)
        x = origin(request, self.setup)
        # where uploads are changes as they are, their rows are not copied
        return new, sent if x is NOWHERE else sent - x

    def then(self, request: Request) -> Callable[..., Array]:
        return self.averaging.columns(request)
