"""The certificate of a run: the conditions of the method's theorem with the constants of the study."""

from typing import Any

from mpifed.core.promises import Keeps
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.features.certificate.constants import FIRST, certified, known
from mpifed.features.feature import Feature
from mpifed.federation.server import Federation
from mpifed.federation.setup import Setup


class Certified(Feature):
    """A certificate at the minimum where that can be computed, else at the final model."""

    # Constants of the true data, for the record alone: docs/privacy.md says that they are not for publication.
    keeps = Keeps.EVERYTHING

    sizes: Array
    settled = False

    def prepared(self, setup: Setup, data: Dataset) -> Setup:
        self.sizes = data.sizes
        return setup

    def before(self, fed: Federation) -> dict[str, Any]:
        constants = known(self.config, fed, self.sizes, self.config.rounds)
        self.settled = constants.at != FIRST
        return {"certificate": certified(self.config, constants)} if self.settled else {}

    def after(self, fed: Federation, x: Array) -> dict[str, Any]:
        if self.settled:
            return {}
        return {"certificate": certified(self.config, known(self.config, fed, self.sizes, fed.round, x))}
