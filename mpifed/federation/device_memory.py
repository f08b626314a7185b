"""What of a host's samples and state stays on its device, and what is copied there whenever clients are called.

Samples come first, then fields of the state. What stays, and one block of clients that is copied, have at most
``device_bytes`` together; what else the computation of a block needs comes on top. No result depends on it.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.arrays import Namespace, is_tensor, on
from mpifed.core.errors import UserError
from mpifed.data.blocks import Block
from mpifed.data.device_block import sent, zeros
from mpifed.data.sparse_block import SparseBlock
from mpifed.federation.on_device import DeviceRows

MB = 1e6


class Alike(NamedTuple):
    """Clients in blocks in memory that have ``D`` rows each on the device, and are computed ``room`` at a time."""

    D: int
    blocks: list[Block]
    room: int

    def sizes(self) -> list[int]:
        """Bytes of each block on the device, with its test samples."""
        return [sum(self._each(block)) + self._tests(block) for block in self.blocks]

    def turn(self) -> int:
        """Bytes of the clients that are computed at a time, where fewer are filled up to ``room``, at most."""
        largest = max(max(self._each(block)) for block in self.blocks)
        return self.room * largest + max(map(self._tests, self.blocks))

    def _each(self, block: Block) -> list[int]:
        """Bytes of each client of a block."""
        return client_bytes(block, self.D)

    def _tests(self, block: Block) -> int:
        return sum(sum(client_bytes(test, test.b.shape[1])) for _, test in block.tests)


def client_bytes(block: Block, D: int) -> list[int]:
    """Bytes of each client of a block with D rows on a device: of each sample label, weight and features.

    For CSR samples these are nonzeros, the two matrices, and where rows begin.
    """
    size = block.b.itemsize
    if not isinstance(block, SparseBlock):
        return [D * (block.n + 2) * size] * len(block)
    nonzeros = np.diff(block.A.indptr[:: block.b.shape[1]])
    return [3 * count * (size + 4) + D * (2 * size + 24) for count in nonzeros.tolist()]


class DeviceMemory:
    """At most ``limit`` bytes on a ``device``; None: no limit. ``asked``: whether the experiment says so."""

    def __init__(self, device: Any, limit: int | None, asked: bool) -> None:
        self.device = device
        self.limit = limit
        self.asked = asked
        self.samples = self.copied = 0  # bytes of samples that stay, and of those that are copied
        self.state = self.state_copied = 0
        self.turn = 0  # bytes of the block that is copied

    def split(self, groups: Sequence[Alike]) -> list[int]:
        """Of each group, how many of its first blocks stay. UserError where not even one block fits."""
        sizes = [alike.sizes() for alike in groups]
        total = sum(map(sum, sizes))
        if self.limit is None or total <= self.limit:
            self.samples = total
            return [len(own) for own in sizes]
        self.turn = min(total, max(alike.turn() for alike in groups))
        if self.turn > self.limit:
            raise UserError(self.refusal(total))
        counts = []
        for own in sizes:
            count = 0
            while count < len(own) and self.samples + own[count] <= self.limit - self.turn:
                self.samples += own[count]
                count += 1
            counts.append(count)
        self.copied = total - self.samples
        return counts

    def refusal(self, total: int) -> str:
        """Why samples of ``total`` bytes cannot be computed with."""
        needs = (
            f"samples take {total / MB:,.1f} MB, and those of clients that are computed at a time {self.turn:,} bytes"
        )
        if self.asked:
            return f"device_bytes = {self.limit} is wrong: {needs}, so it must be {self.turn} or more"
        return (
            f"{needs}, but the device has {self.limit:,} bytes free for them: take one with more memory, start fewer "
            'ranks on it, or compute in memory with kernels = "auto"'
        )

    def rows(self, fields: Sequence[Any]) -> list[DeviceRows]:
        """Fields of the state of all clients, those on the device that fit beside the samples."""
        self.state = self.state_copied = 0
        made = []
        for field in fields:
            size = field.nbytes
            if self.limit is None or self.samples + self.turn + self.state + size <= self.limit:
                self.state += size
                made.append(DeviceRows(on(self.device).asarray(field)))
            else:
                self.state_copied += size
                made.append(WaitingRows(field, on(self.device)))
        return made

    def told(self) -> str:
        """What is copied to the device; empty where all stays there."""
        parts = {"samples": (self.copied, self.samples), "state": (self.state_copied, self.state)}
        found = [
            f"{away / MB:,.1f} of {(away + kept) / MB:,.1f} MB of {name}"
            for name, (away, kept) in parts.items()
            if away
        ]
        return " and ".join(found)


class WaitingRows(DeviceRows):
    """The same in the memory of the CPU: only the rows of clients that are computed are copied to the device, and back.

    On a GPU the memory is pinned, so that copies need no other one on their way.
    """

    def __init__(self, rows: Any, xp: Namespace) -> None:
        if not is_tensor(rows):
            kept = zeros(rows.shape, xp.asarray(rows[:0]).dtype, xp, False)
            kept[...] = on(kept.device).asarray(rows)
            rows = kept
        super().__init__(rows)
        self.xp = xp

    def __getitem__(self, picks: Any) -> "WaitingRows":
        return WaitingRows(self.rows[picks], self.xp)

    def copy(self) -> "WaitingRows":
        return WaitingRows(self.rows.numpy(), self.xp)

    def there(self) -> Any:
        return sent(self.rows, self.xp.device)
