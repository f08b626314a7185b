"""Feature of parts of a model that stay with the clients: the key ``personal``."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from mpifed.core.promises import Supports
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.features.feature import Plugin
from mpifed.features.personal_parts.conflicts import HOME_ROWS
from mpifed.features.personal_parts.names import select_home
from mpifed.features.personal_parts.transform import JoinedGradient, PartsAtHome
from mpifed.federation.callback import Callback
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec
from mpifed.federation.transform import ServerTransform, Transform


class PersonalParts(Plugin, Callback):
    """Parts of a model that stay with the clients."""

    # As its transform. Its note and the models that it stores are for the record.
    supports = Supports.EVERYTHING & ~Supports.DEVICES
    unsupported = {  # noqa: RUF012
        Supports.DEVICES: 'parameters that stay with clients are numpy arrays, so kernels must be "numpy"'
    }
    conflicts = HOME_ROWS

    home: Array  # (n,) bool
    first: Array  # (n_home,) parameters with which every client begins

    def prepare(self, setup: RunSpec, data: Dataset) -> RunSpec:
        """Choose the parameters that stay with the clients, and make them 0 at the server."""
        assert self.config.personal is not None
        self.home = select_home(self.config.personal, setup.problem, data)
        self.first = setup.start[self.home]
        if self.config.start is not None and not self.first.any():
            # the file is of a run with personal, whose model has zeros there
            self.first = setup.problem.initial(data, setup.seed).astype(setup.start.dtype)[self.home]
        start = np.where(self.home, 0, setup.start).astype(setup.start.dtype)
        return setup._replace(start=start, home=self.home)

    def notes(self) -> Iterator[str]:
        stay = int(self.home.sum())
        yield (
            f"{stay:,} of {len(self.home):,} parameters stay with the clients, and the model of the result has zeros "
            "in their place: objective, gradient and accuracies are those of each client's own joined model"
        )
        if self.config.evaluate.unseen:
            yield (
                "clients that never train are tested with the mean of what stays with the others, and again after "
                "steps on that part alone"
            )

    def transforms(self, setup: RunSpec, fed: Federation | None) -> list[Transform | ServerTransform]:
        parts = PartsAtHome(setup, self.first)
        return [parts] if fed is None else [parts, JoinedGradient()]

    def on_end(self, fed: Federation, x: Array) -> dict[str, Any]:
        return {"personal": joined_models(fed, x)} if self.config.record.personal else {}


def joined_models(fed: Federation, x: Array) -> Array:
    """Return each client's joined model at the server's model x (n,): (m, n)."""
    models: Array = fed.inspect(fed.setup.algorithm.received_model, args=(x,))
    return models


def mean_joined_model(fed: Federation, x: Array) -> Array:
    """Return the server's model x (n,) with the mean of what stays with the clients: (n,)."""
    home = fed.setup.home
    if home is None:
        return x
    total = fed.inspect(fed.setup.algorithm.received_model, "sum", args=(x,))
    return np.where(home, total / fed.m, x).astype(x.dtype)
