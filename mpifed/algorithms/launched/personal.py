"""Methods whose local epochs pull a model to another one, with all epochs in one launch on a GPU."""

from mpifed.algorithms.bases.algorithm import Array, Local
from mpifed.algorithms.bases.personal import Personal
from mpifed.algorithms.fedadmm_deep import Client, FedADMMDeep
from mpifed.algorithms.flame import Flame
from mpifed.algorithms.launched.descent import Pull, descended, plain
from mpifed.algorithms.pfedme import PFedMe


class LaunchedEpochs(Personal):
    """The epochs of personal models."""

    def suits(self) -> bool:
        return plain(self) and not self.weight_decay

    def train(self, f: Local, theta: Array, centre: Array) -> Array:
        return descended(f, theta, self.epochs * [self.lr], pull=Pull(self.lam, centre))


class LaunchedFlame(Flame, LaunchedEpochs):
    """FLAME."""


class LaunchedPFedMe(PFedMe, LaunchedEpochs):
    """pFedMe."""


class LaunchedFedADMMDeep(FedADMMDeep):
    """FedADMM for networks."""

    def suits(self) -> bool:
        return plain(self) and not self.weight_decay

    def descend(self, f: Local, client: Client, w: Array) -> Array:
        return descended(f, w, self.epochs * [self.lr], client.pi, Pull(self.rho, w))
