"""Means of uploads with the weights p_i of clients: Σ p_i u_i / Σ p_i over those that are added up."""

from typing import Any

from mpifed.core.typing import Array
from mpifed.federation.request import FOR_THE_RECORD, Reply, Request, parts_of
from mpifed.federation.scaled_local import factors_of
from mpifed.federation.setup import Setup
from mpifed.federation.stage import HostStage, Postage, ServerStage, Visit, times
from mpifed.federation.sums import AT_ONCE, Reduction, nodes, subtotals

AVERAGES = "averages"


class HostAverages(HostStage):
    """What clients upload, or have uploaded last where that is added up, times m p_i."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup

    def up(self, request: Request, visit: Visit, new: Any, reply: Any) -> tuple[Any, Any]:
        if reply is None or request.last is not None:
            return new, reply
        parts, names = parts_of(reply)
        parts = times(parts, factors_of(self.setup)[visit.f.ids])
        return new, dict(zip(names, parts, strict=True)) if names else parts

    def reductions(self, own: Array) -> dict[str, Reduction]:
        lo = int(own[0])
        tree = nodes(lo, int(own[-1]) + 1, self.setup.m)
        plain = AT_ONCE | {"sum": lambda request, rows, ids: subtotals(rows, ids, lo, tree)}

        def weighted(request: Request, rows: Array, ids: Array | None) -> Array:
            if request.last is not None and AVERAGES in request.stages:
                rows = rows * factors_of(self.setup)[own if ids is None else ids, None].astype(rows.dtype)
            return plain[request.reduce](request, rows, ids)

        return dict.fromkeys(("sum", "plain sum"), weighted)


class ServerAverages(ServerStage):
    """Means over the clients called, with their weights: Σ p_i u_i / Σ p_i."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup

    def down(self, request: Request, postage: Postage) -> None:
        if request.verb not in FOR_THE_RECORD and request.reduce in ("sum", "plain sum"):
            request.stages = {**request.stages, AVERAGES: None}

    def open(self, request: Request, reply: Reply) -> None:
        if AVERAGES in request.stages and request.last is None and request.to is not None:
            own = factors_of(self.setup)[request.to]
            reply.rows = reply.rows * reply.rows.dtype.type(len(own) / own.sum())
