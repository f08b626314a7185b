"""Weight decay of weights alone: the problem tells which parameters these are."""

from mpifed.algorithms.parts.decay import decayed
from mpifed.core.promises import Keeps
from mpifed.data.dataset import Dataset
from mpifed.features.feature import Feature
from mpifed.federation.setup import Setup


class WeightDecay(Feature):
    """A method whose optimisers let weights decay, and neither biases nor norms."""

    # Which parameters are weights follows from the problem and sizes, not from samples.
    keeps = Keeps.EVERYTHING

    def prepared(self, setup: Setup, data: Dataset) -> Setup:
        return setup._replace(algorithm=decayed(self.config.algorithm, self.config.problem, data, self.config.dtype))
