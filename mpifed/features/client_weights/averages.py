"""Means of uploads with the weights p_i of clients: Σ p_i u_i / Σ p_i over those that are added up."""

from typing import Any

from mpifed.core.promises import Keeps
from mpifed.core.typing import Array
from mpifed.federation.request import FOR_THE_RECORD, Reply, Request, parts_of
from mpifed.federation.stage import HostStage, Postage, ServerStage, Visit, times
from mpifed.federation.sums import AT_ONCE, Reduction, nodes, subtotals

AVERAGES = "averages"


class HostAverages(HostStage):
    """What clients upload, or have uploaded last where that is added up, times the ``factors`` m p_i (m,)."""

    # Multiplies uploads with weights of clients. Noise is that of uploads without weights: no privacy.
    keeps = Keeps.REPEATED | Keeps.DEVICES

    def __init__(self, factors: Array) -> None:
        self.factors = factors

    def up(self, request: Request, visit: Visit, new: Any, reply: Any) -> tuple[Any, Any]:
        # of last uploads all are added up, of those who are not called too: their factors come with the reduction
        if reply is None or request.last is not None:
            return new, reply
        parts, names = parts_of(reply)
        parts = times(parts, self.factors[visit.f.ids])
        return new, dict(zip(names, parts, strict=True)) if names else parts

    def reductions(self, own: Array) -> dict[str, Reduction]:
        lo = int(own[0])
        tree = nodes(lo, int(own[-1]) + 1, len(self.factors))
        plain = AT_ONCE | {"sum": lambda request, rows, ids: subtotals(rows, ids, lo, tree)}

        def weighted(request: Request, rows: Array, ids: Array | None) -> Array:
            if request.last is not None and AVERAGES in request.stages:
                rows = rows * self.factors[own if ids is None else ids, None].astype(rows.dtype)
            return plain[request.reduce](request, rows, ids)

        return dict.fromkeys(("sum", "plain sum"), weighted)


class ServerAverages(ServerStage):
    """Means over the clients called, with their weights: Σ p_i u_i / Σ p_i."""

    # Divides sums by weights of clients. Noise is that of uploads without weights: no privacy.
    keeps = Keeps.REPEATED | Keeps.DEVICES

    def __init__(self, factors: Array) -> None:
        self.factors = factors

    def down(self, request: Request, postage: Postage) -> None:
        if request.verb not in FOR_THE_RECORD and request.reduce in ("sum", "plain sum"):
            request.stages = {**request.stages, AVERAGES: None}

    def open(self, request: Request, reply: Reply) -> None:
        # a mean divides by the number of clients, c: Σ m p_i u_i times c/Σ m p_i; over all clients Σ m p_i is m already
        if AVERAGES in request.stages and request.last is None and request.to is not None:
            own = self.factors[request.to]
            reply.rows = reply.rows * reply.rows.dtype.type(len(own) / own.sum())
