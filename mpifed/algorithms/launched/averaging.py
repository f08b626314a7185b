"""FedAvg, and methods that begin with its local steps, with all of these in one launch on a GPU."""

from typing import Any

from mpifed.algorithms.bases.algorithm import Array, Local
from mpifed.algorithms.ditto import Ditto
from mpifed.algorithms.fedavg import Client, FedAvg, LocalSteps
from mpifed.algorithms.fednova import FedNova
from mpifed.algorithms.fedopt import FedOpt
from mpifed.algorithms.fedprox import FedProx
from mpifed.algorithms.launched.descent import Pull, descended, plain


class LaunchedSteps(LocalSteps):
    """The local steps of a round."""

    def suits(self) -> bool:
        return plain(self)

    def update(self, f: Local, client: Client, x: Array, k: int, most: Array | None = None) -> tuple[Client, Array]:
        w = self.descend(f, self.origin(client, x), x, self.gammas(f, k, most))
        return (client._replace(w=w) if self.keeps() else client), w

    def gammas(self, f: Local, k: int, most: Array | None) -> list[Any]:
        """The step sizes of all local iterations."""
        own = self.epochs or self.k0
        steps = f.steps(self.k0, self.epochs, 0, most)
        return [self.rate(f, has * self.step.gamma(k + j, own, f.samples)) for j, _, has in steps]

    def descend(self, f: Local, w: Array, x: Array, gammas: list[Any]) -> Array:
        """The local models (c, n) after the iterations from w."""
        return descended(f, w, gammas)


class LaunchedFedAvg(FedAvg, LaunchedSteps):
    """FedAvg."""


class LaunchedFedOpt(FedOpt, LaunchedSteps):
    """FedOpt."""


class LaunchedFedProx(FedProx, LaunchedSteps):
    """FedProx."""

    def descend(self, f: Local, w: Array, x: Array, gammas: list[Any]) -> Array:
        mu = self.mu * (1 if self.scale == "1" else f.m)
        return descended(f, w, [gamma for gamma in gammas for _ in range(self.inner)], pull=Pull(mu, x))


class LaunchedDitto(Ditto, LaunchedSteps):
    """Ditto: the steps of personal models are a launch of their own."""

    def near(self, f: Local, theta: Array, x: Array) -> Array:
        return descended(f, theta, self.inner * [self.lr], pull=Pull(self.lam, x))


class LaunchedFedNova(FedNova, LaunchedSteps):
    """FedNova."""

    def normalised(self, f: Local, client: Client, x: Array, k: int, most: Array | None = None) -> tuple[Client, Any]:
        gammas = self.gammas(f, k, most)
        a = f.zeros(1)
        for gamma in gammas:
            a = a + gamma
        return client, ((self.descend(f, x, x, gammas) - x) / a, a[:, 0])
