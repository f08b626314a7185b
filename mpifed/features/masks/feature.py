"""Feature of secure aggregation, and the rules of the table [masks]."""

import math

from mpifed.core.promises import Supports
from mpifed.features.feature import Plugin
from mpifed.features.masks.masked_sums import MaskedSums
from mpifed.features.masks.masks import Masks
from mpifed.features.rule import LoadedSettings, Rule, Violation
from mpifed.features.settings import Experiment
from mpifed.federation.participation.selection import ScoreSelection
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec
from mpifed.federation.traits import has_options

SCORES_SHOW = (
    "masks cannot be used with selection.name = {selected!r}: candidates send their scores one by one, and masks hide "
    "single uploads"
)


def needs_single_uploads(c: Experiment) -> bool:
    """Return whether the server needs single uploads."""
    single = c.algorithm.upload.single
    return single is not None and has_options(c.algorithm, single)


def too_few_replies(c: LoadedSettings) -> Violation:
    """Return how many clients must reply for masks to cancel if fewer may, else None."""
    masks, system = c.config.masks, c.config.system
    if masks is None or system is None or not system.absence():
        return None
    needed = masks.minimum_replies(c.selector.size)
    return {"needed": needed} if system.least < needed else None


def rounding_error(c: LoadedSettings) -> Violation:
    """Return the setting that adds up uploads without rounding, where only their exact sum is private; else None."""
    # A sum of uploads rounded one by one is no function of their exact sum, for which the noise is sized.
    privacy, masks = c.config.algorithm.privacy(), c.config.masks
    if masks is None or masks.sums == "float" or privacy is None or not (privacy.holds and privacy.sums):
        return None
    if privacy.grid is None:
        return {"right": 'masks.sums must be "float"'}
    needed = math.ceil(-math.log2(privacy.grid(c.m)))
    return {"right": f"it must be at least {needed}"} if masks.fraction < needed else None


RULES: list[Rule[Experiment]] = [
    Rule(lambda c: isinstance(c.selection, ScoreSelection), SCORES_SHOW),
    Rule(
        needs_single_uploads,
        "masks cannot be used with {name}: its server needs uploads one by one, and masks hide single uploads",
    ),
    Rule(
        lambda c: c.algorithm.upload.content == "compressed",
        "masks cannot be used with {name}: it compresses its uploads",
    ),
    Rule(
        lambda c: c.compress and c.compress.up,
        'compress.up = "{up}" cannot be used with masks: masked uploads have all their numbers, so that nothing is '
        "saved",
    ),
]


COUNTED: list[Rule[LoadedSettings]] = [
    Rule(lambda c: c.selector.batch_size is not None, SCORES_SHOW),
    Rule(
        lambda c: c.selector.size < 2,
        "selection takes {selector.size} client a round, but masks need at least 2: the sum of one upload is that "
        "upload",
    ),
    Rule(
        too_few_replies,
        "system.least = {system.least} is wrong: with masks.threshold = {masks.threshold:.3g} masks of {selector.size} "
        "selected clients cancel only where {needed} reply, so it must be at least {needed}",
    ),
    Rule(
        rounding_error,
        "masks.fraction = {masks.fraction} is wrong: it rounds single uploads, and {name} guarantees privacy here for "
        "sums of uploads as they are, so {right}",
    ),
]


class SecureAggregation(Plugin):
    """Uploads under masks that cancel in their sum."""

    # Its transform speaks for itself.
    supports = Supports.EVERYTHING

    rules = RULES
    counted = COUNTED

    @property
    def table(self) -> Masks:
        assert self.config.masks is not None
        return self.config.masks

    def transforms(self, setup: RunSpec, fed: Federation | None) -> list[MaskedSums]:
        # after compression: masks hide what is left of an upload
        return [MaskedSums(setup, self.table, None if fed is None else fed.schedule)]
