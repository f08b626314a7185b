"""Uploads that are multiplied with a weight of their client on their way to a sum."""

from typing import Any

from mpifed.federation.request import Request, parts_of
from mpifed.federation.wire.stage import HostStage, Visit

WEIGHTED = "weighted"


class Weighted(HostStage):
    """The hosts' side; the weights (c,) of the clients called travel with the request."""

    def up(self, request: Request, visit: Visit, new: Any, reply: Any) -> tuple[Any, Any]:
        weights = request.stages[WEIGHTED]
        if reply is None or weights is None or request.to is None:
            return new, reply
        own = weights[request.to.searchsorted(visit.f.ids)]
        parts, _ = parts_of(reply)
        return new, tuple([part * own.reshape(-1, *[1] * (part.ndim - 1)).astype(part.dtype) for part in parts])
