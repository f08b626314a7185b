"""Means of uploads one by one: what goes with the table [robust], and with attackers that know other uploads."""

from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.features.feature import Feature, Housing
from mpifed.features.findings import absent
from mpifed.features.robust.averaging import ROWS, Averaging, HostRows, ServerRows
from mpifed.features.robust.means import BITS_AND_RESUME, RobustMean
from mpifed.features.robust.one_mean import refusal
from mpifed.features.rule import Counted, Found, Rule
from mpifed.federation.host import Host
from mpifed.federation.server import Federation
from mpifed.federation.setup import Setup


def few(c: Counted) -> Found:
    """Too few uploads in a round, also where clients are absent."""
    robust = c.config.robust
    system = c.config.system
    if robust is None:
        return None
    least = system.least if system is not None and absent(c.config) else c.selector.size
    reasons = map(robust.lacks, range(least, c.selector.size + 1))
    return next(({"why": why} for why in reasons if why), None)


class Robust(Feature):
    """A mean that is made of single uploads."""

    # As the means themselves, which say so too.
    keeps = BITS_AND_RESUME
    unkept = RobustMean.unkept

    # where attackers alone ask for rows, theirs is the rule
    rules = (Rule(lambda c: refusal(c) if c.robust is not None else None, 'robust = "{robust_name}" is wrong: {why}'),)
    counted = (Rule(few, 'robust = "{robust_name}" is wrong: {why}'),)
    bad: Array | None = None  # (m,) bool: who attacks

    def data(self, data: Dataset) -> Dataset:
        c = self.config
        self.bad = None if c.attack is None else c.attack.attackers(data.m, c.seed)
        return data

    def server(self, fed: Federation) -> None:
        fed.stages.append(ServerRows(fed, self.averaging(fed.setup)))

    def host(self, host: Host, housing: Housing) -> None:
        host.add_stage(ROWS, HostRows(host.setup, self.averaging(host.setup)))

    def averaging(self, setup: Setup) -> Averaging:
        return Averaging(setup, self.config.robust, self.config.attack, self.bad)
