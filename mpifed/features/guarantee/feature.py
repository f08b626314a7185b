"""Feature of methods with noise: notes and attributes about the privacy that a run guarantees."""

from collections.abc import Sequence
from typing import Any

from mpifed.core.promises import Supports
from mpifed.data.dataset import Dataset
from mpifed.features.conditions import guarantees_privacy
from mpifed.features.feature import Plugin
from mpifed.features.guarantee.notes import inference_notes, privacy_notes
from mpifed.federation.callback import Callback
from mpifed.federation.setup import RunSpec


class Guarantee(Plugin, Callback):
    """Method whose uploads have noise, with a guarantee of privacy or without one."""

    # It says what is guaranteed; each part says whether it keeps that.
    supports = Supports.EVERYTHING

    inferred: Sequence[str] = ()

    def prepare(self, setup: RunSpec, data: Dataset) -> RunSpec:
        self.inferred = inference_notes(self.config, data)
        # f is of the true data: a run must not show that it is not finite, or for which client.
        return setup._replace(records_nonfinite=guarantees_privacy(self.config))

    def attributes(self, replayed: int) -> dict[str, Any]:
        privacy = self.config.algorithm.privacy()
        assert privacy is not None
        return {"privacy": str(privacy)} | ({"rounds_redrawn": replayed} if privacy.holds else {})

    def notes(self) -> list[str]:
        return [*privacy_notes(self.config), *self.inferred]
