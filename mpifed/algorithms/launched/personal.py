"""Methods whose local epochs pull a model to another one, with all epochs in one launch on a GPU."""

from mpifed.algorithms.bases.algorithm import Array, Local
from mpifed.algorithms.bases.personal import Personal
from mpifed.algorithms.fedadmm_deep import Client, FedADMMDeep
from mpifed.algorithms.flame import Flame
from mpifed.algorithms.launched.descent import Pull, descended
from mpifed.algorithms.parts.optimizers import SGD
from mpifed.algorithms.pfedme import PFedMe


class LaunchedEpochs(Personal):
    """The epochs of personal models."""

    def suits(self) -> bool:
        """Whether these options make every epoch a gradient step on all samples, without weight decay."""
        return self.batch_size == 0 and self.optimizer == SGD() and not self.weight_decay

    def train(self, f: Local, theta: Array, centre: Array) -> Array:
        return descended(f, theta, self.epochs * [self.lr], pull=Pull(self.lam, centre))


class LaunchedFlame(Flame, LaunchedEpochs):
    """FLAME."""


class LaunchedPFedMe(PFedMe, LaunchedEpochs):
    """pFedMe."""


class LaunchedFedADMMDeep(FedADMMDeep):
    """FedADMM for networks."""

    def suits(self) -> bool:
        return self.batch_size == 0 and self.optimizer == SGD() and not self.weight_decay

    def update(self, f: Local, client: Client, w: Array) -> tuple[Client, Array]:
        theta = descended(f, w, self.epochs * [self.lr], client.pi, Pull(self.rho, w))
        pi = client.pi + self.rho * (theta - w)
        z = theta + pi / self.rho
        return Client(pi, z), z
