"""Feature of compressed messages, and the rules of the table [compress]."""

from collections.abc import Iterator

from mpifed.compressors.compressor import note_large_k
from mpifed.core.errors import UserError
from mpifed.core.promises import Supports
from mpifed.data.dataset import Dataset
from mpifed.features.compression.compress import Compress
from mpifed.features.compression.transform import MessageCompression
from mpifed.features.feature import Plugin
from mpifed.features.findings import compressors, find_lossy, last_upload_field
from mpifed.features.rule import Rule, Violation
from mpifed.features.settings import Experiment
from mpifed.federation.callback import Callback
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec
from mpifed.federation.traits import required_methods


def refused_inexact(c: Experiment) -> Violation:
    """Return the compressor of messages that the method needs exactly, or None."""
    exact = c.algorithm.upload.exact
    for way in compressors(c):
        compressor = find_lossy(c, way)
        if compressor and way in exact:
            return {**compressor, "why": exact[way]}
    return None


def unfit_compressor(c: Experiment) -> Violation:
    """Return the compressor that cannot work here, with its error, or None."""
    for way, C in compressors(c).items():
        try:
            C.verify()
        except UserError as error:
            return {"way": way, "C": C.label(), "error": error}
    return None


def wrong_feedback(c: Experiment) -> Violation:
    """Return the error of feedback where the server keeps the last uploads, which is feedback enough; else None."""
    if c.compress is None or not find_lossy(c, "up") or not last_upload_field(c):
        return None
    try:
        c.compress.refuse_feedback(c.algorithm.label())
    except UserError as error:
        return {"error": error}
    return None


RULES: list[Rule[Experiment]] = [
    Rule(
        lambda c: c.compress and c.compress.feedback != "auto" and c.compress.up is None,
        'compress.feedback = "{compress.feedback}" is wrong: it is about compress.up, which is absent',
    ),
    Rule(refused_inexact, 'compress.{way} = "{C}" is wrong: {name} needs exact {way}loads, because {why}'),
    Rule(unfit_compressor, 'compress.{way} = "{C}" is wrong: {error}'),
    Rule(wrong_feedback, "{error}"),
]


class Compression(Plugin, Callback):
    """Messages that compressors shorten."""

    # Its compressors and its transform speak for themselves.
    supports = Supports.EVERYTHING

    rules = RULES
    numbers = 0

    @property
    def table(self) -> Compress:
        assert self.config.compress is not None
        return self.config.compress

    def prepare(self, setup: RunSpec, data: Dataset) -> RunSpec:
        n = setup.start.size
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
