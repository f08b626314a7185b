"""Short messages: what goes with the table [compress]."""

from mpifed.core.errors import UserError
from mpifed.core.promises import Keeps
from mpifed.features.feature import Feature
from mpifed.features.findings import compressors, last_uploads, lossy
from mpifed.features.rule import Found, Rule
from mpifed.features.settings import Experiment


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
