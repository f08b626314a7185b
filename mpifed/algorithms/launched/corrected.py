"""Methods whose local steps have a correction, and others with a loop of their own, in one launch on a GPU."""

from typing import Any

from mpifed.algorithms.bases.algorithm import Array, Local
from mpifed.algorithms.dgd import DGD
from mpifed.algorithms.dgd import Client as Node
from mpifed.algorithms.fedbuff import FedBuff
from mpifed.algorithms.feddyn import Client as Dynamic
from mpifed.algorithms.feddyn import FedDyn
from mpifed.algorithms.launched.descent import Pull, descended, plain
from mpifed.algorithms.local_gd import LocalGD
from mpifed.algorithms.lt_admm import LTADMM
from mpifed.algorithms.proxskip import ProxSkip
from mpifed.algorithms.scaffold import Client, Scaffold


class LaunchedScaffold(Scaffold):
    """SCAFFOLD."""

    def suits(self) -> bool:
        return self.batch_size == 0

    def descend(self, f: Local, client: Client, x: Array, c: Array, k: int) -> tuple[Array, Array | float]:
        own = self.epochs or self.k0
        gammas = [self.step.gamma(k + j, own, f.samples) for j in range(own)]
        return descended(f, x, gammas, c - client.c), sum(gammas)


class LaunchedFedDyn(FedDyn):
    """FedDyn."""

    def suits(self) -> bool:
        return plain(self)

    def descend(self, f: Local, client: Dynamic, x: Array, k: int) -> Array:
        own = self.epochs or self.k0
        gammas = [self.step.gamma(k + j, own, f.samples) for j in range(own)]
        return descended(f, x, gammas, -client.h, Pull(self.alpha, x))


class LaunchedFedBuff(FedBuff):
    """FedBuff."""

    def suits(self) -> bool:
        return plain(self)

    def update(self, f: Local, client: Any, x: Array) -> tuple[Any, Array]:
        return client, descended(f, x, (self.epochs or self.k0) * [self.lr]) - x


class LaunchedLocalGD(LocalGD):
    """Local GD."""

    def suits(self) -> bool:
        return True

    def descend(self, f: Local, client: Any, x: Array, gamma: float) -> tuple[Any, Array]:
        return client, descended(f, x, self.k0 * [gamma])


class LaunchedProxSkip(ProxSkip):
    """ProxSkip."""

    def suits(self) -> bool:
        return self.batch_size == 0

    def descend(self, f: Local, client: Any, x: Array, gamma: float, steps: int) -> tuple[Any, Array]:
        x = descended(f, x, steps * [gamma], -client.h)
        return client._replace(x=x), x


class LaunchedDGD(DGD):
    """DGD, which takes several steps between two exchanges with order = "adapt-combine" alone."""

    def suits(self) -> bool:
        return self.order == "adapt-combine"

    def adapted(self, f: Local, client: Node, gamma: float) -> tuple[Node, None]:
        return Node(x=descended(f, client.x, self.k0 * [gamma])), None


class LaunchedLTADMM(LTADMM):
    """LT-ADMM, whose correction stands outside of γ."""

    def suits(self) -> bool:
        return True

    def train(self, f: Local, client: Any, gamma: float, beta: float) -> tuple[Any, None]:
        correction = beta / gamma * (client.a + client.apart)
        return client._replace(x=descended(f, client.x, self.tau * [gamma], correction)), None
