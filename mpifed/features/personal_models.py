"""Feature that stores personal models in the result."""

from typing import Any

from mpifed.core.promises import Supports
from mpifed.core.typing import Array
from mpifed.features.conflicts import CONFLICTS
from mpifed.features.feature import Plugin
from mpifed.features.personal_parts import joined_models
from mpifed.federation.callback import Callback
from mpifed.federation.method import HasPersonalModels
from mpifed.federation.server import Federation


class PersonalModels(Plugin, Callback):
    """Personal model of each client, stored in the result."""

    # They are stored when the run is over; a note says that they are from the true data.
    supports = Supports.EVERYTHING
    conflicts = CONFLICTS["personal_models"]

    def on_end(self, fed: Federation, x: Array) -> dict[str, Any]:
        if self.config.personal:
            return {"personal": joined_models(fed, x)}
        assert isinstance(self.config.algorithm, HasPersonalModels)
        return {"personal": fed.inspect(self.config.algorithm.personal_models)}
