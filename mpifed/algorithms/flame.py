"""FLAME: S. Zhu et al., "Personalized federated learning via ADMM with Moreau envelope", Algorithm 1."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, ClassVar, Literal, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.algorithms.base import Algorithm
from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.federation.server import Federation


class Client(NamedTuple):
    theta: Array  # (c, n) personal models
    w: Array  # (c, n) local models
    pi: Array  # (c, n) dual variables
    z: Array  # (c, n) last upload


class Server(NamedTuple):
    x: Array  # (n,) model w


class Personal(Algorithm):
    """Algorithms whose clients keep a personal model ``theta``, which never leaves them."""

    lam: Annotated[float, Meta(gt=0, description="pull λ of personal models to the centre")] = 5.0
    lr: Annotated[float, Meta(gt=0, description="step size of the local epochs")] = 0.01
    epochs: Annotated[int, Meta(ge=1, description="local epochs H")] = 5
    batch_size: Annotated[int, Meta(ge=0, description="samples of a mini-batch; 0: all")] = 100
    weight_decay: Annotated[float, Meta(ge=0, description="weight decay in every gradient")] = 0.0

    personal: ClassVar[bool] = True

    def start(self, fed: Federation) -> Server:
        return Server(x=fed.initial())

    def round(self, fed: Federation, server: Server) -> Server:
        return Server(x=fed.mean(self.update, server.x, to=fed.select(server.x), last="z"))

    @abstractmethod
    def update(self, f: Local, client: Any, w: Array) -> tuple[Any, Array]:
        """The local update of the chosen: new state and z_i."""
        raise NotImplementedError

    def train(self, f: Local, theta: Array, centre: Array) -> Array:
        """H epochs on f_i(θ) + (λ/2)‖θ − centre‖² from θ."""
        for _, batch, has in f.steps(0, self.epochs, self.batch_size):
            g = batch.grad(theta) + self.lam * (theta - centre) + self.weight_decay * theta
            theta = theta - self.lr * has * g
        return theta

    def centre(self, client: Any, w: Array) -> Array:
        """Where personal models are pulled to."""
        return w

    def score(self, f: Local, client: Any, w: Array, size: int) -> tuple[Any, Array]:
        """‖gradient of the local objective at θ_i‖ on one mini-batch, for biased selection."""
        _, batch, _ = next(f.steps(1, 0, size))
        g = batch.grad(client.theta) + self.lam * (client.theta - self.centre(client, w))
        return client, np.sqrt(np.vecdot(g, g))

    def personalised(self, f: Local, client: Any) -> Array:
        return client.theta


class Flame(Personal, tag="flame"):
    """Personal models by local epochs, local models and duals in closed form; the server averages all last uploads.

    θ_i ← H epochs on f_i(θ) + (λ/2)‖θ − centre‖²;  w_i = (λθ_i/m + ρw − π_i)/(λ/m + ρ);  π_i ← π_i + ρ(w_i − w);
    z_i = w_i + π_i/ρ;  w = mean of z_i over all m. The centre is the broadcast model (released code) or the client's own
    w_i (as printed). After an update π_i = (λ/m)(θ_i − w_i).  Source: flame (9)–(11), Algorithm 1; errata.
    """

    rho: Annotated[float, Meta(gt=0, description="penalty ρ")] = 0.01
    center: Annotated[Literal["global", "local"], Meta(description="centre of personal models: w, or own w_i")] = (
        "global"
    )

    def advice(self, m: int) -> str | None:
        pull, rho = self.lam / m, self.rho
        if rho >= pull and pull**2 * (1 + rho) / rho**2 < (pull + rho) / 2:
            return None
        return (
            f"flame: Theorem 2 asks rho >= lam/m = {pull:.3g} and (lam/m)^2 (1 + rho)/rho^2 < (lam/m + rho)/2, but "
            f"rho = {rho:.3g}; no published run has it"
        )

    def join(self, f: Local) -> Client:
        return Client(theta=f.initial(), w=f.initial(), pi=f.zeros(), z=f.initial())

    def centre(self, client: Client, w: Array) -> Array:
        return w if self.center == "global" else client.w

    def update(self, f: Local, client: Client, w: Array) -> tuple[Client, Array]:
        """Algorithm 1, the local update of the chosen."""
        theta = self.train(f, client.theta, self.centre(client, w))  # (9)
        pull = self.lam / f.m
        wi = (pull * theta + self.rho * w - client.pi) / (pull + self.rho)  # (10)
        pi = client.pi + self.rho * (wi - w)  # (11)
        z = wi + pi / self.rho
        return Client(theta, wi, pi, z), z
