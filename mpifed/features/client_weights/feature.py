"""Weights p_i of clients: f = Σ p_i f_i, and which methods and tables go with them."""

from collections.abc import Iterable
from typing import ClassVar

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.promises import Keeps, Reasons
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.features.client_weights.averages import AVERAGES, HostAverages, ServerAverages
from mpifed.features.client_weights.factors import Factors, shares
from mpifed.features.feature import Feature, Housing
from mpifed.features.rule import Found, Rule
from mpifed.features.selection_laws.importance import Importance
from mpifed.features.settings import Experiment
from mpifed.federation.host import Host
from mpifed.federation.server import Federation
from mpifed.federation.setup import Setup
from mpifed.federation.traits import needs


def wrong_weights(c: Experiment) -> Found:
    """Why clients cannot have weights of their own."""
    if c.objective.weights == "clients":
        return None
    name, averaged = c.algorithm.label(), c.algorithm.upload.averaged
    why = ""
    if averaged and c.algorithm.on_graph:
        mean = "which is about a server's mean of models, and it has no server"
        right = "so leave averaged out of its upload: weights are then those of the f_i"
        why = f"{name} says Upload(averaged=True), {mean}, {right}"
    elif averaged and own_weights(c):
        plain = 'which only plain sums of uploads can have, so it must be "clients"'
        why = f"{name} averages models with these weights, {plain} with {own_weights(c)}"
    elif averaged and c.algorithm.certify:
        why = f'the theorem of {name} is about equal weights, so with algorithm.certify = true it must be "clients"'
    elif c.objective.weights != "samples" and "majorizer_inverse" in needs(c.algorithm):
        right = 'so it must be "samples" or "clients"; algorithm.H = "diagonal" takes all'
        why = f"{name} needs majorizer_inverse here, which takes weights by samples only, {right}"
    return {"why": why} if why else None


def own_weights(c: Experiment) -> str:
    """What does more with uploads than to add them up."""
    if c.masks is not None:
        return "masks"
    if c.compress is not None:
        return "compress"
    return 'selection.name = "importance"' if isinstance(c.selection, Importance) else ""


RULES: list[Rule[Experiment]] = [
    Rule(wrong_weights, "objective.weights = {weights} is wrong: {why}"),
]


class ClientWeights(Feature):
    """Weights of the clients' f_i."""

    # Uploads are multiplied after the noise was sized for them as they are.
    keeps = Keeps.EVERYTHING & ~Keeps.PRIVACY
    unkept: ClassVar[Reasons] = {
        Keeps.PRIVACY: 'the noise of {name} is that of uploads without weights, so it must be "clients"'
    }

    rules = RULES
    shares: Array  # (m,) m p_i
    view: Factors

    def prepared(self, setup: Setup, data: Dataset) -> Setup:
        """UserError for weights of another number of clients."""
        weights = self.config.objective.weights
        given = weights if data.client_weights is None else data.client_weights
        sizes = data.totals
        if not isinstance(given, str) and len(given) != setup.m:
            raise UserError(
                f"objective.weights has {len(given)} numbers, and there are {setup.m} clients: it must have one for "
                "each"
            )
        per_sample = setup.m / np.sum(sizes).item() if weights == "samples" else 0.0
        self.shares = shares(given, sizes)
        self.view = Factors(self.shares.astype(setup.start.dtype), per_sample)
        return setup

    def server(self, fed: Federation) -> None:
        if self.config.algorithm.upload.averaged:
            fed.counts = self.shares
            fed.stages.append(ServerAverages(self.shares))

    def host(self, host: Host, housing: Housing) -> None:
        if not self.config.algorithm.upload.averaged:
            host.views.append(self.view)
            return
        # clients train on their f_i as they are and the means of their models have the weights; f has them too
        host.evaluation.views.append(self.view)
        host.add_stage(AVERAGES, HostAverages(self.shares))


def shares_among(features: Iterable[Feature], m: int) -> Array:
    """m p_i of the m clients of a study: (m,)."""
    return next((one.shares for one in features if isinstance(one, ClientWeights)), np.ones(m))
