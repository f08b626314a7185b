"""Feature of robust means of single uploads and of attackers that know other uploads; rules of the table [robust]."""

from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.features.feature import Plugin
from mpifed.features.findings import may_be_absent
from mpifed.features.robust.averaging import RobustAveraging, RobustRows
from mpifed.features.robust.means import BITS_AND_RESUME, RobustMean
from mpifed.features.robust.one_mean import explain_conflict
from mpifed.features.rule import LoadedSettings, Rule, Violation
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec


def too_few_uploads(c: LoadedSettings) -> Violation:
    """Return why a round may have too few uploads, also where clients are absent; else None."""
    robust = c.config.robust
    system = c.config.system
    if robust is None:
        return None
    minimum = system.least if system is not None and may_be_absent(c.config) else c.selector.size
    reasons = map(robust.lacks, range(minimum, c.selector.size + 1))
    return next(({"why": why} for why in reasons if why), None)


class Robust(Plugin):
    """Mean that is made of single uploads."""

    # As the means themselves, which say so too.
    supports = BITS_AND_RESUME
    unsupported = RobustMean.unsupported

    # where only an attack needs rows, the attack has the rule
    rules = (
        Rule(
            lambda c: explain_conflict(c) if c.robust is not None else None, 'robust = "{robust_name}" is wrong: {why}'
        ),
    )
    counted = (Rule(too_few_uploads, 'robust = "{robust_name}" is wrong: {why}'),)
    bad: Array | None = None  # (m,) bool: who attacks

    def data(self, data: Dataset) -> Dataset:
        c = self.config
        self.bad = None if c.attack is None else c.attack.attackers(data.m, c.seed)
        return data

    def transforms(self, setup: RunSpec, fed: Federation | None) -> list[RobustRows]:
        return [RobustRows(setup, RobustAveraging(setup, self.config.robust, self.config.attack, self.bad))]
