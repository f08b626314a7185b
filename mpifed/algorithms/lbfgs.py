"""L-BFGS, Algorithm 2.1 of D. C. Liu, J. Nocedal, "On the limited memory BFGS method for large scale optimization",
doi:10.1007/BF01589116 (1989)."""

from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.algorithms.parts import ROUNDING, SMALLEST_STEP, Client, PlotStyle, to_tune
from mpifed.extend import Algorithm, Array, Federation, Local, Participation, Supports, Unsupported, Upload

FLAT = 1e-8  # cosine of s and y up to which a pair says nothing about curvature


class Server(NamedTuple):
    x: Array  # (n,) model, the last trial point that was accepted
    f: float  # f(x)
    g: Array  # (n,) ∇f(x)
    d: Array  # (n,) direction of the next trial point
    step: float  # its step size s
    moved: float  # step size with which x moved in the last round, 0 where it did not
    S: Array  # (memory, n) steps of the last pairs, the newest last; 0 where there is none yet
    Y: Array  # (memory, n) differences of their gradients


class LBFGS(Algorithm, tag="lbfgs"):
    """A quasi-Newton method at the server; all clients send f_i and ∇f_i at one trial point a round.

    x⁺ = x + s d if f(x + s d) <= f(x) + c s ⟨∇f(x), d⟩, and the next s is 1; otherwise x stays, and s/2 is next.
    d = −B∇f(x) by the two loops over the last ``memory`` pairs of s_k = x⁺ − x and y_k = ∇f(x⁺) − ∇f(x), from
    B = (⟨s_k, y_k⟩/‖y_k‖²) I of the newest; without pairs d = −∇f(x)/max(1, ‖∇f(x)‖). A pair is kept if ⟨s_k, y_k⟩
    is above 1e-8 ‖s_k‖‖y_k‖.  f_i and ∇f_i at x⁰ travel before the first round, and are charged.
    With [compress] they are those at the models that clients receive, and s_k and d are the server's own, who knows ∇f
    but for what the compressors' memory has still to send; nothing is proved for that.
    Source: Algorithm 2.1, with backtracking to Armijo's condition in place of Wolfe's.
    """

    title = "L-BFGS"
    plot_style = PlotStyle("black", 4, 5)
    # A round reads the server's state alone, and its means run along one tree.
    supports = Supports.REPEATED | Supports.DEVICES
    theorem = Unsupported("that of doi:10.1007/BF01589116 names no constant of its linear rate")

    memory: Annotated[int, Meta(ge=1, description="pairs of steps and differences of gradients")] = 10
    c: Annotated[float, to_tune("share of the slope by which f must go down", gt=0, lt=0.5)] = 1e-4

    participation = Participation.ALL
    upload = Upload(content="gradient")
    no_proximal_step = Unsupported("its steps are in the metric of past gradients, so they are no proximal steps")
    asynchronous = Unsupported("it compares values of f, which must be those of all clients at one model")

    def message_size(self, n: int) -> tuple[int, int]:
        return n, n + 1

    def init_client(self, f: Local) -> Client:
        return Client()

    def init_server(self, fed: Federation) -> Server:
        x = fed.initial()
        f, g = fed.mean(self.derivatives, x, charge=True)
        empty = np.zeros((self.memory, fed.n), fed.dtype)
        return Server(x, float(f), g, steepest(g), 1.0, 0.0, empty, empty)

    def round(self, fed: Federation, server: Server) -> Server:
        trial = server.x + server.step * server.d
        f, g = fed.mean(self.derivatives, trial)
        # at the optimum f cannot fall by more than its rounding
        bound = server.f + self.c * server.step * float(server.g @ server.d) + ROUNDING * float(np.spacing(np.abs(f)))
        if f > bound:
            # a vanishing step means that the direction is lost to rounding: the memory begins anew
            if server.step < SMALLEST_STEP:
                return server._replace(d=steepest(server.g), step=1.0, moved=0.0, S=0 * server.S, Y=0 * server.Y)
            return server._replace(step=server.step / 2, moved=0.0)
        S, Y = remember_pair(server.S, server.Y, trial - server.x, g - server.g)
        return Server(trial, float(f), g, lbfgs_direction(S, Y, g), 1.0, server.step, S, Y)

    def derivatives(self, f: Local, client: Client, x: Array) -> tuple[Client, tuple[Array, Array]]:
        """Return f_i and ∇f_i."""
        return client, f.value_grad(x)

    def report(self, server: Server, row: dict[str, float], m: int) -> dict[str, float]:
        return {"server_step": server.moved}


def steepest(g: Array) -> Array:
    """Return −g, shortened to length 1: (n,)."""
    return -g / max(1.0, float(np.linalg.norm(g)))


def remember_pair(S: Array, Y: Array, s: Array, y: Array) -> tuple[Array, Array]:
    """Return the pairs with a new one for the oldest, if its curvature is positive: (memory, n) each."""
    if not s @ y > FLAT * np.linalg.norm(s) * np.linalg.norm(y):
        return S, Y
    return np.concatenate([S[1:], s[None]]), np.concatenate([Y[1:], y[None]])


def lbfgs_direction(S: Array, Y: Array, g: Array) -> Array:
    """Return −B g by the two loops over the stored pairs: (n,)."""
    curvature = np.vecdot(S, Y)
    pairs = np.flatnonzero(curvature > 0)
    if not len(pairs):
        return steepest(g)
    q = -g
    a = np.zeros_like(curvature)
    for k in pairs[::-1]:
        a[k] = S[k] @ q / curvature[k]
        q = q - a[k] * Y[k]
    q = curvature[-1] / (Y[-1] @ Y[-1]) * q
    for k in pairs:
        q = q + (a[k] - Y[k] @ q / curvature[k]) * S[k]
    return q
