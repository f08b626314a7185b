"""Feature of compressed messages: the table [compress]."""

from collections.abc import Iterator

from mpifed.compressors.compressor import note_large_k
from mpifed.core.promises import Supports
from mpifed.data.dataset import Dataset
from mpifed.features.compression.compress import Compress
from mpifed.features.compression.transform import MessageCompression
from mpifed.features.feature import Plugin
from mpifed.features.message_conflicts import MESSAGES
from mpifed.federation.callback import Callback
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec
from mpifed.federation.traits import required_methods


class Compression(Plugin, Callback):
    """Messages that compressors shorten."""

    # Its compressors and its transform speak for themselves.
    supports = Supports.EVERYTHING
    conflicts = MESSAGES["compression"]

    numbers = 0

    @property
    def table(self) -> Compress:
        assert self.config.compress is not None
        return self.config.compress

    def prepare(self, setup: RunSpec, data: Dataset) -> RunSpec:
        n = setup.shared_start.size
        self.numbers = n * (n + 1) // 2 if "hess" in required_methods(setup.algorithm) else n  # numbers in a message
        return setup

    def notes(self) -> Iterator[str]:
        up = self.table.up
        if up is not None and self.table.is_biased():
            yield (
                f'compress.feedback = "none": the errors of {up.label()} do not cancel, so the run ends elsewhere than '
                'without them; "memory" and "error" make up for them'
            )
        for way, C in self.table.by_direction().items():
            yield from note_large_k(f"compress.{way}", C, self.numbers)

    def transforms(self, setup: RunSpec, fed: Federation | None) -> list[MessageCompression]:
        return [MessageCompression(setup, self.table)]
