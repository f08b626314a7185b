"""Sizes of blocks of samples that the first rounds measure."""

from mpifed.core.guards import own
from mpifed.core.promises import Keeps
from mpifed.data.dataset import Dataset
from mpifed.features.block_sizes.block_sizes import BlockSizes
from mpifed.features.feature import Feature, Housing
from mpifed.features.settings import DEVICES
from mpifed.federation.host import Host
from mpifed.federation.setup import Setup
from mpifed.federation.traits import needs
from mpifed.problems.classifier import Classifier
from mpifed.problems.linear_model import LinearModel


class MeasuredBlocks(Feature):
    """The first rounds try some sizes of blocks, and the fastest stays."""

    # Times are measured, on which no number depends: blocks have the same bits whatever their size.
    keeps = Keeps.EVERYTHING

    dense = False

    def prepared(self, setup: Setup, data: Dataset) -> Setup:
        self.dense = not data.sparse and data.columns is None
        return setup

    def host(self, host: Host, housing: Housing) -> None:
        if self.dense and self.measurable(host.setup.kernels):
            BlockSizes(host, housing.rounds).begin()

    def measurable(self, kernels: str) -> bool:
        """Whether blocks can be cut anew at no cost, and no bit depends on them, which a user's own classes may forget.

        Samples are dense and in memory; the model is linear; no matrices of second derivatives, which order clients by
        another rule.
        """
        problem, algorithm = self.config.problem, self.config.algorithm
        linear = isinstance(problem, LinearModel | Classifier) and "hess" not in needs(algorithm)
        written = own(type(problem)) or own(type(algorithm))
        return linear and kernels not in DEVICES and not written and self.config.asynchronous is None
