"""Feature of runs whose first rounds measure sizes of blocks of samples."""

from mpifed.core.guards import is_user_class
from mpifed.core.promises import Supports
from mpifed.data.dataset import Dataset
from mpifed.features.block_sizes.block_sizes import BlockSizes
from mpifed.features.feature import EnginePlugin, HostDivision
from mpifed.features.settings import DEVICES
from mpifed.federation.host import Host
from mpifed.federation.setup import RunSpec
from mpifed.federation.traits import required_methods
from mpifed.problems.classifier import Classifier
from mpifed.problems.linear_model import LinearModel


class MeasuredBlocks(EnginePlugin):
    """Sizes of blocks that the first rounds try; the fastest stays."""

    # No number depends on the measured times: blocks of any size give the same bits.
    supports = Supports.EVERYTHING

    dense = False

    def prepare(self, setup: RunSpec, data: Dataset) -> RunSpec:
        self.dense = not data.sparse and data.columns is None
        return setup

    def extend_host(self, host: Host, division: HostDivision) -> None:
        if self.dense and self.measurable(host.setup.kernels):
            BlockSizes(host, division.rounds).begin()

    def measurable(self, kernels: str) -> bool:
        """Return whether blocks can be cut anew at no cost and without changing bits.

        Samples are dense and in memory; the model is linear; no matrices of second derivatives, which order clients by
        another rule; no class of a user, whose bits may depend on blocks.
        """
        problem, algorithm = self.config.problem, self.config.algorithm
        linear = isinstance(problem, LinearModel | Classifier) and "hess" not in required_methods(algorithm)
        of_user = is_user_class(type(problem)) or is_user_class(type(algorithm))
        return linear and kernels not in DEVICES and not of_user and self.config.asynchronous is None
