"""Short messages: what goes with the table [compress]."""

from collections.abc import Iterator

from mpifed.compressors.compressor import above
from mpifed.core.errors import UserError
from mpifed.core.promises import Keeps
from mpifed.data.dataset import Dataset
from mpifed.features.compression.compress import Compress
from mpifed.features.compression.stages import COMPRESSED, HostCompression, ServerCompression
from mpifed.features.feature import Feature, Housing
from mpifed.features.findings import compressors, last_uploads, lossy
from mpifed.features.rule import Found, Rule
from mpifed.features.settings import Experiment
from mpifed.federation.host import Host
from mpifed.federation.server import Federation
from mpifed.federation.setup import Setup
from mpifed.federation.traits import needs


def inexact(c: Experiment) -> Found:
    """The compressor of messages that the method needs as they are."""
    exact = c.algorithm.upload.exact
    for way in compressors(c):
        found = lossy(c, way)
        if found and way in exact:
            return {**found, "why": exact[way]}
    return None


def unfit(c: Experiment) -> Found:
    """The compressor that cannot work here."""
    for way, C in compressors(c).items():
        try:
            C.verify()
        except UserError as error:
            return {"way": way, "C": C.label(), "error": error}
    return None


def wrong_feedback(c: Experiment) -> Found:
    """Feedback of uploads whose server keeps the last ones, which is feedback enough."""
    if c.compress is None or not lossy(c, "up") or not last_uploads(c):
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
    Rule(inexact, 'compress.{way} = "{C}" is wrong: {name} needs exact {way}loads, because {why}'),
    Rule(unfit, 'compress.{way} = "{C}" is wrong: {error}'),
    Rule(wrong_feedback, "{error}"),
]


class Compressed(Feature):
    """Messages that compressors make short."""

    # Its compressors and stages speak for themselves.
    keeps = Keeps.EVERYTHING

    rules = RULES
    numbers = 0

    @property
    def table(self) -> Compress:
        assert self.config.compress is not None
        return self.config.compress

    def prepared(self, setup: Setup, data: Dataset) -> Setup:
        n = setup.start.size
        self.numbers = n * (n + 1) // 2 if "hess" in needs(setup.algorithm) else n  # of a message
        return setup

    def notes(self) -> Iterator[str]:
        up = self.table.up
        if up is not None and self.table.biased():
            yield (
                f'compress.feedback = "none": the errors of {up.label()} do not cancel, so the run ends elsewhere than '
                'without them; "memory" and "error" make up for them'
            )
        for way, C in self.table.ways().items():
            yield from above(f"compress.{way}", C, self.numbers)

    def server(self, fed: Federation) -> None:
        fed.stages.append(ServerCompression(fed.setup, self.table))

    def host(self, host: Host, housing: Housing) -> None:
        host.add_stage(COMPRESSED, HostCompression(host.setup, self.table, len(host.order)))
