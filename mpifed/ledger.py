"""What travelled between server and clients, as papers count it."""
from __future__ import annotations

import numpy as np

from mpifed.request import Request


class Ledger:
    """What travelled between server and clients: the paper's communication, whatever the number of ranks.

    An exchange is one download and one upload of those called, in whatever order. Arrays of real numbers are charged, to
    each client who receives or sends them; single numbers (a step size, the round) and who is chosen are not. Clients who
    are asked but do not answer in time ([system]) are charged nothing.
    """

    def __init__(self) -> None:
        self.uploads = self.downloads = self.bytes_up = self.bytes_down = 0
        self.up = self.down = 0    # requests that brought something up, or down

    @property
    def exchanges(self) -> int:
        return max(self.up, self.down)

    def charge(self, request: Request, clients: int, reply: int) -> None:
        """Charge one request to ``clients`` clients, each answering with ``reply`` bytes."""
        shared = sum(a.nbytes for a in request.args if isinstance(a, np.ndarray) and a.dtype.kind == "f")
        own = request.each.nbytes if request.each is not None and request.each.dtype.kind == "f" else 0
        self.down += bool(shared or own)
        self.downloads += clients if shared or own else 0
        self.bytes_down += shared * clients + own
        self.up += bool(reply)
        self.uploads += clients if reply else 0
        self.bytes_up += reply * clients
