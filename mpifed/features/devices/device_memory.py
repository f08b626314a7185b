"""What the samples of a host take on its device, and a refusal where they do not fit there."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from mpifed.core.errors import UserError
from mpifed.kernels.blocks import Block
from mpifed.kernels.torch_device import free_bytes

MB = 1e6


class Alike(NamedTuple):
    """Clients in blocks in memory that have ``D`` rows each on the device, and are computed ``room`` at a time."""

    D: int
    blocks: list[Block]
    room: int

    def bytes(self) -> int:
        """Bytes of these clients on the device, with their test samples."""
        tests = sum(client_bytes(test, test.b.shape[1]) for block in self.blocks for _, test in block.tests)
        return tests + sum(client_bytes(block, self.D) for block in self.blocks)


def client_bytes(block: Block, D: int) -> int:
    """Bytes of the clients of a block with D rows each on a device."""
    return block.products.device_bytes(block, D)


def refuse_full(device: Any, groups: Sequence[Alike]) -> None:
    """UserError where the samples of these clients have no room on a device: with their bytes, and those it has."""
    room = free_bytes(device)
    needed = sum(alike.bytes() for alike in groups)
    if room is not None and needed > room:
        raise UserError(
            f"samples take {needed / MB:,.1f} MB on the device, which has {room / MB:,.1f} MB free for them: take one "
            "with more memory, spread them over more ranks with a GPU each, or compute in memory with "
            'kernels = "auto"'
        )
