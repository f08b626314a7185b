"""The count of messages between server and clients, or between the nodes of a graph."""

import numpy as np

from mpifed.federation.request import Request
from mpifed.federation.transform import MessageCost


class Ledger:
    """A count of messages between server and clients: the paper's communication, whatever the number of ranks.

    An exchange is one download and one upload of the clients called, in either order; there is none without a client.
    Arrays of real numbers are
    charged, to each client that receives or sends them; single numbers (a step size, the round) and the selection are
    not. A client that does not reply in time ([system]) is charged nothing. Bits are exact; a compressed message has
    whole bytes.
    """

    def __init__(self) -> None:
        self.uploads = self.downloads = self.bytes_up = self.bytes_down = self.bits_up = self.bits_down = 0
        self.up = self.down = 0  # requests with an upload, or with a download

    @property
    def exchanges(self) -> int:
        """Number of exchanges."""
        return max(self.up, self.down)

    def charge(self, request: Request, clients: int, reply: int, cost: MessageCost) -> None:
        """Charge one request to ``clients`` clients, each of which replies with ``reply`` bytes.

        ``cost`` has the sizes of compressed and masked messages, where these replace them.
        """
        arrays = [a for a in request.args if isinstance(a, np.ndarray) and a.dtype.kind == "f"]
        shared, receivers = 8 * sum(a.nbytes for a in arrays), clients
        if cost.down is not None:
            # compressed downloads go to all clients, who must know x̂ to understand the next one
            shared, receivers = cost.down
        private = request.each.nbytes if request.each is not None and request.each.dtype.kind == "f" else 0
        if receivers and (shared or private):
            self.down += 1
            self.downloads += receivers
            self.bytes_down += -(-shared // 8) * receivers + private
            self.bits_down += shared * receivers + 8 * private
        if clients and reply:
            self.up += 1
            self.uploads += clients
            each = reply if cost.bits is None else -(-cost.bits // 8)  # whole bytes
            up, down = cost.masked_bytes or (each * clients, 0)
            self.bytes_up += up
            self.bytes_down += down
            self.bits_up += 8 * up if cost.bits is None else cost.bits * clients
            self.bits_down += 8 * down

    def charge_preparation(self, clients: int, up: int, down: int) -> None:
        """Charge messages by which clients prepared their data, ``up`` and ``down`` bytes of all together."""
        self.up += clients > 0
        self.down += clients > 0
        self.uploads += clients
        self.downloads += clients
        self.bytes_up += up
        self.bytes_down += down
        self.bits_up += 8 * up
        self.bits_down += 8 * down

    def charge_edges(self, messages: int, bits: int) -> None:
        """Charge messages between nodes, of ``bits`` each: an upload of one node and a download of another."""
        size = -(-bits // 8)
        self.up += 1
        self.down += 1
        self.uploads += messages
        self.downloads += messages
        self.bytes_up += messages * size
        self.bytes_down += messages * size
        self.bits_up += messages * bits
        self.bits_down += messages * bits
