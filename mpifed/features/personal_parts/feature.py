"""Feature of parts of a model that stay with the clients: the key ``personal``."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from mpifed.core.promises import Supports
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.features.conditions import Violation
from mpifed.features.conflict import Conflict, list_methods
from mpifed.features.feature import Plugin
from mpifed.features.personal_parts.names import select_home
from mpifed.features.personal_parts.transform import JoinedGradient, PartsAtHome
from mpifed.features.settings import Experiment
from mpifed.federation.callback import Callback
from mpifed.federation.method import FederatedMethod, HasPersonalModels
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec
from mpifed.federation.traits import has_options
from mpifed.federation.transform import ServerTransform, Transform


def leaves_parts(method: FederatedMethod) -> bool:
    """Return whether a method with its options can leave parameters with the clients."""
    return explain_whole(method) is None


def explain_whole(method: FederatedMethod) -> str | None:
    """Return why the server of a method needs whole models, or None."""
    options = method.upload.at_home
    if isinstance(method, HasPersonalModels):
        return "its clients have whole models of their own"
    if options is None:
        return (
            "it does not say that its server can do without a part of each model; a class of your own says so by "
            "upload = mpifed.extend.Upload(at_home={})"
        )
    for key, value in options.items():
        if not has_options(method, {key: value}):
            return f"it can only with algorithm.{key} = {toml_value(value)}"
    if method.message_size(1)[1] != method.upload.vectors:
        return "its clients upload a number here that is about whole models"
    return None


def whole_models(c: Experiment) -> Violation:
    """Return why the server of a study needs whole models, or None."""
    why = explain_whole(c.algorithm)
    return None if why is None else {"why": why, "able": list_methods(leaves_parts)}


HOME_ROWS = [
    Conflict(
        ("personal", "a method whose server needs whole models"),
        "personal is wrong: {name} cannot leave parameters with the clients, because {why}; {able} can",
        whole_models,
    ),
    Conflict(
        ("personal", "asynchronous"),
        "personal is wrong with a table [asynchronous]: mpifed joins what a client receives with its own parameters in "
        "rounds alone, so leave one of them out",
    ),
    Conflict(
        ("personal", "algorithm.certify"),
        "algorithm.certify = true is wrong with personal: theorems are about one model, so it must be false",
        lambda c: c.algorithm.certify,
    ),
]


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
