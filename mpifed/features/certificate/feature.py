"""Feature that certifies a run: the conditions of the method's theorem with the constants of the study."""

from typing import Any

from mpifed.core.promises import Supports
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.features.certificate.constants import FIRST, compute_constants, make_certificate
from mpifed.features.feature import Plugin
from mpifed.federation.callback import Callback
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec


class RunCertificate(Plugin, Callback):
    """Certificate of a run at the minimum if that can be computed, else at the final model."""

    # Constants of the true data, for the record alone: docs/privacy.md says that they are not for publication.
    supports = Supports.EVERYTHING

    sizes: Array
    settled = False

    def prepare(self, setup: RunSpec, data: Dataset) -> RunSpec:
        self.sizes = data.sizes
        return setup

    def on_start(self, fed: Federation) -> dict[str, Any]:
        constants = compute_constants(self.config, fed, self.sizes, self.config.rounds)
        self.settled = constants.at != FIRST
        return {"certificate": make_certificate(self.config, constants)} if self.settled else {}

    def on_end(self, fed: Federation, x: Array) -> dict[str, Any]:
        if self.settled:
            return {}
        return {
            "certificate": make_certificate(self.config, compute_constants(self.config, fed, self.sizes, fed.round, x))
        }
