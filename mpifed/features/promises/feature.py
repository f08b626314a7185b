"""Promises that a run asks for: every part of it must say that it keeps them."""

from collections.abc import Iterator

from mpifed.core.errors import UserError
from mpifed.core.promises import Keeps
from mpifed.data.dataset import Dataset
from mpifed.features.feature import Feature, Housing
from mpifed.features.listed import brought, features_of
from mpifed.features.promises.parts import of_feature, of_samples, of_selector, of_stage, parts_of
from mpifed.features.promises.refusal import asked, refusals
from mpifed.features.rule import Counted, Found, Rule
from mpifed.features.settings import Experiment
from mpifed.federation.host import Host
from mpifed.federation.server import Federation


def unkept(c: Experiment) -> Found:
    """The first part that does not say that it keeps what a study asks for."""
    return said(next(refusals(asked(c), parts_of(c, features_of(c)), c), ""))


def unkept_by_selector(c: Counted) -> Found:
    """The same of the selector that a selection has made."""
    return said(next(refusals(asked(c.config), [of_selector(c.selector, c.config, c.m)], c.config), ""))


def said(refusal: str) -> Found:
    """The words of a rule."""
    return {"refusal": refusal} if refusal else None


class Promised(Feature):
    """The promises that a study asks for. It comes last, so that the stages of all others are there."""

    # It has rules and computes nothing.
    keeps = Keeps.EVERYTHING

    rules = (Rule(unkept, "{refusal}"),)
    counted = (Rule(unkept_by_selector, "{refusal}"),)

    @property
    def promises(self) -> Keeps:
        """What every part must keep."""
        return asked(self.config)

    def data(self, data: Dataset) -> Dataset:
        """UserError for columns of samples, and features that these bring, with which a promise does not hold."""
        features = brought(self.config, data)
        parts = [*of_samples(data), *(of_feature(feature, self.config) for feature in features)]
        self.refuse(refusals(self.promises, parts, self.config))
        return data

    def server(self, fed: Federation) -> None:
        """UserError for a stage with which a promise does not hold; at the hosts too."""
        self.refuse(refusals(self.promises, map(of_stage, fed.stages), self.config))

    def host(self, host: Host, housing: Housing) -> None:
        self.refuse(refusals(self.promises, map(of_stage, host.stages.values()), self.config))

    def refuse(self, found: Iterator[str]) -> None:
        for sentence in found:
            raise UserError(sentence)


class Survived(Promised):
    """Survival of ranks that die, for which a job asks, not its study."""

    # As for promises of studies.
    keeps = Keeps.EVERYTHING

    promises = Keeps.SURVIVAL


def refuse_dying(c: Experiment) -> None:
    """UserError where a part of a study does not say that it survives a rank that dies."""
    for sentence in refusals(Keeps.SURVIVAL, parts_of(c, features_of(c)), c):
        raise UserError(sentence)


def computes_on_devices(c: Experiment) -> bool:
    """Whether every part of a study says so."""
    return next(refusals(Keeps.DEVICES, parts_of(c, features_of(c)), c), None) is None
