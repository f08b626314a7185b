"""ProxSkip, Algorithm 2 of K. Mishchenko, G. Malinovsky, S. Stich, P. Richtárik, "ProxSkip: Yes! Local gradient steps
provably lead to communication acceleration! Finally!", arXiv:2202.09357 (2022)."""

from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.algorithms.bases.algorithm import Algorithm, Array, Federation, Local, Share, StepSize, passes
from mpifed.core.errors import UserError
from mpifed.core.promises import Keeps
from mpifed.federation.traits import Look, Mean, Need, Theorem, Upload, demands, needs


class Client(NamedTuple):
    h: Array  # (c, n) control variates
    x: Array  # (c, n) last local models x̂_i


class Server(NamedTuple):
    x: Array  # (n,) model
    gamma: float  # step size γ
    p: float  # probability of a mean after a step


class ProxSkip(Algorithm, tag="proxskip"):
    """Corrected local steps, after each of which one coin for all clients decides whether they are averaged (Scaffnew).

    x̂_i = x_i − γ(∇f_i(x_i) − h_i);  with probability p, x_i = mean x̂_j, h_i ← h_i + (p/γ)(x_i − x̂_i); else x_i = x̂_i.
    A round is the steps up to a mean; their number, drawn by the server, is not charged. As Σ h_i = 0, a mean of all
    x̂_j is the paper's of x̂_j − (γ/p)h_j; one of the selected keeps Σ h_i = 0 (arXiv:2302.09832).
    """

    title = "ProxSkip"
    look = Look("orange", 1, 1)
    # The number of steps of a round is drawn from fed.rng; control variates are state.
    keeps = Keeps.REPEATED | Keeps.DEVICES
    theorem = Theorem("mpifed.theory.proxskip:certificate")

    gamma: StepSize = None
    p: Annotated[Share | None, Meta(description="probability of a mean (default: √(min α_i/max r_i))")] = None
    batch_size: Annotated[int, Meta(ge=0, description="samples of a mini-batch; 0: all")] = 0

    requires = (
        Need("convexity", unless=("p",), also="algorithm.p where the f_i are not strongly convex"),
        Need("lipschitz", unless=("gamma", "p")),
    )
    mean = Mean.COUPLED
    upload = Upload(known="x", exact={"down": "Σ h_i = 0 must hold, which takes the mean itself"})

    def units(self) -> float:
        """Steps of a round on average: 1/p; 1 where p follows from the problem."""
        return 1 / (self.p or 1.0)

    def work(self, d: Array) -> Array:
        return passes(d, 1, 0, self.batch_size)

    def join(self, f: Local) -> Client:
        if self.p is None and not f.xp.all(f.convexity() > 0):
            raise UserError(f"proxskip cannot run on {f.problem.label()} as it stands: it needs {demands(self)}")
        return Client(h=f.zeros(), x=f.initial())

    def start(self, fed: Federation) -> Server:
        L, least = fed.max(self.constants)
        return Server(fed.initial(), self.gamma or float(1 / L), self.p or float(np.sqrt(-least / L)))

    def constants(self, f: Local, client: Client) -> tuple[Client, tuple[Array, Array]]:
        """r_i and −α_i, or 1 for what is not needed."""
        r = f.lipschitz() if "lipschitz" in needs(self) else f.xp.ones(len(f))
        return client, (r, -f.convexity() if self.p is None else f.xp.ones(len(f)))

    def round(self, fed: Federation, server: Server) -> Server:
        steps = int(fed.rng.geometric(server.p))  # up to the coin that says 1
        selected = fed.select(server.x, units=steps)
        x = fed.mean(self.descend, server.x, server.gamma, steps, to=selected)
        fed.call(self.correct, x, server.p / server.gamma, to=selected, charge=selected is not None)
        return server._replace(x=x)

    def descend(self, f: Local, client: Client, x: Array, gamma: float, steps: int) -> tuple[Client, Array]:
        """Steps between two coins that say 1."""
        for _, batch, _ in f.steps(steps, 0, self.batch_size):
            x = x - gamma * (batch.grad(x) - client.h)
        return client._replace(x=x), x

    def correct(self, f: Local, client: Client, x: Array, factor: float) -> tuple[Client, None]:
        """h_i, from the mean: all clients get it with the next round, those of a selection in a second download."""
        return client._replace(h=client.h + factor * (x - client.x)), None
