"""ProxSkip, Algorithm 2 of K. Mishchenko, G. Malinovsky, S. Stich, P. Richtárik, "ProxSkip: Yes! Local gradient steps
provably lead to communication acceleration! Finally!", arXiv:2202.09357 (2022)."""

from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed import UserError
from mpifed.algorithms.parts import (
    BatchSize,
    PlotStyle,
    StepSize,
    Theorem,
    UnitFraction,
    count_gradients,
    further_requirements,
    rate_at,
    required_methods,
)
from mpifed.extend import Algorithm, Array, Federation, Local, MeanEstimate, Requirement, Supports, Upload


class Client(NamedTuple):
    h: Array  # (c, n) control variates
    x: Array  # (c, n) last local models x̂_i


class Server(NamedTuple):
    x: Array  # (n,) model
    gamma: float  # step size γ
    p: float  # probability of a mean after a step


class ProxSkip(Algorithm, tag="proxskip"):
    """Corrected local steps; after each, one coin for all clients decides whether to average (Scaffnew).

    x̂_i = x_i − γ(∇f_i(x_i) − h_i);  with probability p, x_i = mean x̂_j, h_i ← h_i + (p/γ)(x_i − x̂_i); else x_i = x̂_i.
    A round is the steps up to a mean, all with one γ; their number, drawn by the server, is not charged. As Σ h_i = 0,
    a mean of all x̂_j is the paper's of x̂_j − (γ/p)h_j; one of the selected keeps Σ h_i = 0 (arXiv:2302.09832).
    """

    title = "ProxSkip"
    plot_style = PlotStyle("orange", 1, 1)
    # The number of steps of a round is drawn from fed.rng; control variates are state.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Theorem("mpifed.theory.gradient_descent:proxskip")

    gamma: StepSize = None
    p: Annotated[UnitFraction | None, Meta(description="probability of a mean (default: √(min α_i/max r_i))")] = None
    batch_size: BatchSize = 0

    requires = (
        Requirement("convexity", unless=("p",), also="algorithm.p where the f_i are not strongly convex"),
        Requirement("lipschitz", unless=("gamma", "p")),
    )
    mean_estimate = MeanEstimate.COUPLED
    upload = Upload(server_copy="x", exact={"down": "Σ h_i = 0 must hold, which takes the mean itself"})

    def repeats(self) -> float:
        """Return the mean number of steps of a round: 1/p; 1 where p follows from the problem."""
        return 1 / (self.p or 1.0)

    def sample_gradients(self, d: Array) -> Array:
        return count_gradients(d, 1, 0, self.batch_size)

    def init_client(self, f: Local) -> Client:
        if self.p is None and not f.xp.all(f.convexity() > 0):
            raise UserError(
                f"proxskip cannot run on {f.problem.label()} as it stands: it needs {further_requirements(self)}"
            )
        return Client(h=f.zeros(), x=f.initial())

    def init_server(self, fed: Federation) -> Server:
        L, minus_alpha = fed.max(self.constants)
        return Server(
            fed.initial(), rate_at(self.gamma or float(1 / L), fed), self.p or float(np.sqrt(-minus_alpha / L))
        )

    def constants(self, f: Local, client: Client) -> tuple[Client, tuple[Array, Array]]:
        """Return r_i and −α_i, with 1 for those that are not needed: (c,) each."""
        r = f.lipschitz() if "lipschitz" in required_methods(self) else f.xp.ones(len(f))
        return client, (r, -f.convexity() if self.p is None else f.xp.ones(len(f)))

    def round(self, fed: Federation, server: Server) -> Server:
        steps = int(fed.rng.geometric(server.p))  # up to the coin that says 1
        selected = fed.select(server.x, repeats=steps)
        gamma = rate_at(self.gamma or server.gamma, fed)
        x = fed.mean(self.descend, server.x, gamma, steps, to=selected)
        fed.call(self.correct, x, server.p / gamma if gamma else 0.0, to=selected, charge=selected is not None)
        return server._replace(x=x)

    def descend(self, f: Local, client: Client, x: Array, gamma: float, steps: int) -> tuple[Client, Array]:
        """Take local steps up to the coin that says mean, and upload x̂_i."""
        y = f.point(x, steps, self.batch_size, vectors=2)
        for _, batch, _ in f.steps(steps, 0, self.batch_size):
            y = y - gamma * (batch.grad(y) - client.h)
        x = f.array(y)
        return client._replace(x=x), x

    def correct(self, f: Local, client: Client, x: Array, factor: float) -> tuple[Client, None]:
        """Update h_i from the mean; all clients get it with the next round, selected ones in a second download."""
        return client._replace(h=client.h + factor * (x - client.x)), None
