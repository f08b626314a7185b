"""Methods with noise: what a run and its result say of the privacy that it guarantees, or that it guarantees none."""

from collections.abc import Sequence
from typing import Any

from mpifed.core.promises import Keeps
from mpifed.data.dataset import Dataset
from mpifed.features.feature import Feature
from mpifed.features.findings import promises
from mpifed.features.guarantee.notes import privacy_notes
from mpifed.features.guarantee.prepared_data import inferred
from mpifed.federation.server import Federation
from mpifed.federation.setup import Setup


class Guarantee(Feature):
    """A method whose uploads have noise, with a guarantee of privacy or without one."""

    # It says what is guaranteed; what must hold for that, every part says.
    keeps = Keeps.EVERYTHING

    inferred: Sequence[str] = ()

    def prepared(self, setup: Setup, data: Dataset) -> Setup:
        self.inferred = inferred(self.config, data)
        return setup

    def server(self, fed: Federation) -> None:
        # f is of the true data: that it is not finite, and of which client, is nothing that may be seen of a run.
        fed.unfailing = promises(self.config)

    def attributes(self, redrawn: int) -> dict[str, Any]:
        privacy = self.config.algorithm.privacy()
        assert privacy is not None
        return {"privacy": str(privacy)} | ({"rounds_redrawn": redrawn} if privacy.holds else {})

    def notes(self) -> list[str]:
        return [*privacy_notes(self.config), *self.inferred]
