"""Feature of weight decay for weights alone; the problem tells which parameters are weights."""

from mpifed.algorithms.parts.decay import restrict_decay
from mpifed.core.promises import Supports
from mpifed.data.dataset import Dataset
from mpifed.features.feature import Plugin
from mpifed.federation.setup import RunSpec


class WeightDecay(Plugin):
    """Method whose optimisers decay weights, but neither biases nor norms."""

    # Which parameters are weights follows from the problem and sizes, not from samples.
    supports = Supports.EVERYTHING

    def prepare(self, setup: RunSpec, data: Dataset) -> RunSpec:
        return setup._replace(
            algorithm=restrict_decay(self.config.algorithm, self.config.problem, data, self.config.dtype)
        )
