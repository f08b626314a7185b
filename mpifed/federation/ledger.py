"""What travelled between server and clients, or between the nodes of a graph."""

import numpy as np

from mpifed.federation.request import Request
from mpifed.federation.stage import Postage


class Ledger:
    """What travelled between server and clients: the paper's communication, whatever the number of ranks.

    An exchange is one download and one upload of the clients called, in either order. Arrays of real numbers are
    charged, to each client that receives or sends them; single numbers (a step size, the round) and the selection are
    not. A client that does not reply in time ([system]) is charged nothing. Bits are exact; a compressed message has
    whole bytes.
    """

    def __init__(self) -> None:
        self.uploads = self.downloads = self.bytes_up = self.bytes_down = self.bits_up = self.bits_down = 0
        self.up = self.down = 0  # requests that brought something up, or down

    @property
    def exchanges(self) -> int:
        return max(self.up, self.down)

    def charge(self, request: Request, clients: int, reply: int, postage: Postage) -> None:
        """Charge one request to ``clients`` clients, each answering with ``reply`` bytes.

        ``postage`` has what compressed messages and masks cost instead.
        """
        arrays = [a for a in request.args if isinstance(a, np.ndarray) and a.dtype.kind == "f"]
        shared, receivers = 8 * sum(a.nbytes for a in arrays), clients
        if postage.down is not None:
            # compressed downloads go to all clients, who must know x̂ to understand the next one
            shared, receivers = postage.down
        own = request.each.nbytes if request.each is not None and request.each.dtype.kind == "f" else 0
        if shared or own:
            self.down += 1
            self.downloads += receivers
            self.bytes_down += -(-shared // 8) * receivers + own
            self.bits_down += shared * receivers + 8 * own
        if reply:
            self.up += 1
            self.uploads += clients
            each = reply if postage.bits is None else -(-postage.bits // 8)  # whole bytes
            up, down = postage.masked or (each * clients, 0)
            self.bytes_up += up
            self.bytes_down += down
            self.bits_up += 8 * up if postage.bits is None else postage.bits * clients
            self.bits_down += 8 * down

    def before(self, clients: int, up: int, down: int) -> None:
        """Charge what the clients exchanged to prepare their data, in bytes of all of them."""
        self.up += clients > 0
        self.down += clients > 0
        self.uploads += clients
        self.downloads += clients
        self.bytes_up += up
        self.bytes_down += down
        self.bits_up += 8 * up
        self.bits_down += 8 * down

    def carry(self, messages: int, bits: int) -> None:
        """Charge messages of so many ``bits`` between nodes, each as an upload of one and a download of the other."""
        size = -(-bits // 8)
        self.up += 1
        self.down += 1
        self.uploads += messages
        self.downloads += messages
        self.bytes_up += messages * size
        self.bytes_down += messages * size
        self.bits_up += messages * bits
        self.bits_down += messages * bits
