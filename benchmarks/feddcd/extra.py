"""What FedDCD's benchmarks need beside mpifed: LIBSVM's MNIST, networks under dual methods, and the theory's rates."""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.algorithms import accfeddcd, feddcd
from mpifed.algorithms.local_solvers import Solver
from mpifed.core.typing import Array
from mpifed.data.blocks import Block
from mpifed.data.sources.public_images import IdxImages, Mnist
from mpifed.experiment import config
from mpifed.federation.local import Local
from mpifed.federation.server import Federation
from mpifed.problems.mlp import MLP
from mpifed.problems.quadratic import Quadratic
from mpifed.results.result import Result

TINY = 1e-9  # share of the first gap below which rounding counts


class MnistScale(IdxImages):
    """MNIST with pixels x/255, as in mnist.scale of LIBSVM, from which section 8.1 takes its data."""

    scale = (0.0, 1.0)

    def parts(self) -> list[str]:
        return Mnist(part=self.part).parts()

    def read(self, part: str) -> tuple[Path, Array, Array]:
        return Mnist(part=self.part).read(part)


# networks under dual methods (section 8.1)


class Network(MLP):
    """The MLP as dual methods take it: as if λ were the strong convexity that its f_i do not have.

    α = lam, and ∇f_i without a bound that could be known: 1 stands for β, which no option used here asks for.
    Source: section 8.1; the released program does the same.
    """

    def convexity(self, block: Block) -> Array:
        return np.full(len(block), self.lam)

    def lipschitz(self, block: Block) -> Array:
        return np.ones(len(block))


class Adam(Solver):
    """Full-batch ADAM on f_i(w) − ⟨y_i, w⟩ with moments from 0 every time.

    m ← 0.9 m + 0.1 g, v ← 0.999 v + 0.001 g², w ← w − lr·m̂/(√v̂ + 1e-8).  Source: section 8.1, "20 steps of ADAM".
    """

    steps: Annotated[int, Meta(ge=1, description="number of steps")] = 20
    lr: Annotated[float, Meta(gt=0, description="step size")] = 1e-3

    def passes(self) -> int | None:
        return self.steps

    def minimise(self, f: Local, Y: Array, W: Array, alpha: float, beta: float, share: float) -> Array:
        m, v = np.zeros_like(W), np.zeros_like(W)
        for t in range(1, self.steps + 1):
            g = f.grad(W) - Y
            m = 0.9 * m + 0.1 * g
            v = 0.999 * v + 0.001 * g * g
            W = W - self.lr * (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
        return W


class Descent(Solver):
    """Epochs of SGD on f_i(w) − ⟨y_i, w⟩.  Source: section 8.1, "5 epochs SGD when the data is non-i.i.d."."""

    epochs: Annotated[int, Meta(ge=1, description="passes over the samples")] = 5
    lr: Annotated[float, Meta(gt=0, description="step size")] = 0.1
    batch_size: Annotated[int, Meta(ge=0, description="samples of a mini-batch; 0: all")] = 10

    def minimise(self, f: Local, Y: Array, W: Array, alpha: float, beta: float, share: float) -> Array:
        for _, batch, has in f.steps(0, self.epochs, self.batch_size):
            W = W - has * self.lr * (batch.grad(W) - Y)
        return W


class FedDCD(feddcd.FedDCD):
    """FedDCD whose clients start (1) from the server's model, not from their own last w_i.

    Source: the released program, which does so for networks (src/training.jl, synchronize!); (7) says w_i^(t−1).
    """

    def round(self, fed: Federation, server: feddcd.Server) -> feddcd.Server:
        chosen = fed.select(server.x)
        fed.call(self.restart, server.x, to=chosen)
        x = fed.mean(self.solve, *server[1:], to=chosen)
        fed.call(self.ascend, x, server.alpha, to=chosen)
        return server._replace(x=x)

    def restart(self, f: Local, client: feddcd.Client, x: Array) -> tuple[feddcd.Client, None]:
        """w_i = x."""
        return client._replace(w=np.tile(x, (len(f), 1))), None


class AccFedDCD(accfeddcd.AccFedDCD):
    """The same of AccFedDCD, before each of its two draws solves (1)."""

    def round(self, fed: Federation, server: accfeddcd.Server) -> accfeddcd.Server:  # type: ignore[override]
        x, alpha, beta, share, a, b, r = server
        fed.call(self.extrapolate, a, b)
        for step, scale in ((self.step_y, alpha), (self.step_z, alpha * a * r / (a * a + b))):
            chosen = fed.select(x)
            fed.call(self.restart, x, to=chosen)
            x = fed.mean(self.solve, alpha, beta, share, to=chosen)
            fed.call(step, x, scale, to=chosen)
        return server._replace(x=x)

    def restart(self, f: Local, client: accfeddcd.Client, x: Array) -> tuple[accfeddcd.Client, None]:
        """w_i = x."""
        return client._replace(w=np.tile(x, (len(f), 1))), None


# rates (sections 4, 6 and 7)


class Loose(Quadratic):
    """Quadratic functions of which the algorithm knows but a bound α of their strong convexity."""

    alpha: Annotated[float, Meta(gt=0, description="α, at most the least eigenvalue of any Q_i")] = 1.0

    def convexity(self, block: Block) -> Array:
        return np.full(len(block), self.alpha)


class Theory(NamedTuple):
    """Quadratic f_i and what sections 4 to 7 say of a run on them.

    α and β as the algorithm knows them; ``most`` the β of the construction (41), whose f_i are smoother than it says;
    w* the minimiser, y*_i = ∇f_i(w*), f* the least value of the mean of f_i.
    """

    accelerated: bool
    N: int
    tau: int
    alpha: float
    beta: float
    most: float
    w: Array  # (n,) w*
    y: Array  # (N, n) y*
    f: float

    @property
    def r(self) -> float:
        return (self.tau - 1) / (self.N - 1)

    @property
    def draws(self) -> int:
        """Exchanges an iteration."""
        return 2 if self.accelerated else 1

    @property
    def a(self) -> float:
        """a of Algorithm 2."""
        root = math.sqrt(self.alpha / self.beta)
        return root / (1 / self.r + root)

    @property
    def upper(self) -> float:
        """The guaranteed factor an iteration: 1 − r α/β of (3), 1 − a of (10)."""
        return 1 - (self.a if self.accelerated else self.r * self.alpha / self.beta)

    @property
    def delta(self) -> float:
        """δ = ((√(β/(Nα)) − 1)/(√(β/(Nα)) + 1))² of appendix F."""
        root = math.sqrt(self.most / (self.N * self.alpha))
        return ((root - 1) / (root + 1)) ** 2

    @property
    def lost(self) -> float:
        """(a² + b)/(2r²α)·‖y*‖², what (10) leaves out for z = 0, b = a r² α/β; 0 without acceleration."""
        b = self.a * self.r**2 * self.alpha / self.beta
        return (self.a**2 + b) / (2 * self.r**2 * self.alpha) * float(np.sum(self.y**2)) if self.accelerated else 0.0


@lru_cache(maxsize=4)
def theory(result: Result) -> Theory:
    """What the theory says of a run, worked out from its configuration."""
    run = config.experiment(result.config)
    data = run.data.load(run.seed, "float64")
    X, y = data.rows(0, data.m)
    Q, b = np.asarray(X).reshape(data.m, data.n, data.n), np.asarray(y).reshape(data.m, data.n)
    w = np.linalg.solve(Q.mean(axis=0), b.mean(axis=0))
    spectrum = np.linalg.eigvalsh(Q)
    return Theory(
        run.algorithm.label() == "accfeddcd",
        data.m,
        run.selection.draws(run.seed, data.m, run.rounds).size,
        float(getattr(run.problem, "alpha", spectrum.min())),
        float(spectrum.max()),
        float(getattr(run.data, "beta", spectrum.max())),
        w,
        Q @ w - b,
        float(-b.mean(axis=0) @ w / 2),
    )


def gap(result: Result) -> Array:
    """f − f* of the mean of f_i, as far as rounding lets it be known."""
    return known(np.asarray(result.rounds["objective"], float) - theory(result).f)


def dual_gap(result: Result) -> Array:
    """G(y) − G* = Σ f_i*(y_i) + N f*, as far as rounding lets it be known."""
    told = theory(result)
    return known(np.asarray(result.rounds["dual_objective"], float) + told.N * told.f)


def known(found: Array) -> Array:
    """The numbers as long as they are above TINY times the first, then nan."""
    below = found <= TINY * found[0]
    end = int(np.argmax(below)) if below.any() else len(found)
    return np.where(np.arange(len(found)) < end, found, np.nan)


def dual_ratio(result: Result) -> float:
    """The mean over the iterations of (G(y⁺) − G*)/(G(y) − G*), whose expectation (3) bounds in each of them."""
    found = dual_gap(result)
    end = int(np.count_nonzero(~np.isnan(found)))
    whole = np.asarray(result.rounds["dual_objective"], float) + theory(result).N * theory(result).f
    after = np.maximum(whole[1 : end + 1], 0)
    return float(np.mean(after / whole[: len(after)]))


def upper_rate(result: Result) -> float:
    """The guaranteed factor an iteration: 1 − r α/β of (3), 1 − a of (10)."""
    return theory(result).upper


def lower_rate(result: Result) -> float:
    """1 − (τ/N)(1 − δ) an exchange, the last equality before (14) in appendix F; its square for AccFedDCD."""
    told = theory(result)
    return float((1 - told.tau / told.N * (1 - told.delta)) ** told.draws)


def rate(result: Result) -> float:
    """The factor an iteration by which f − f* fell over the second half of what is known of it."""
    found = gap(result)
    found = found[~np.isnan(found)]
    half = len(found) // 2
    return float((found[-1] / found[half]) ** (1 / max(len(found) - 1 - half, 1)))


def speed(result: Result) -> float:
    """−ln of the measured factor."""
    return -math.log(rate(result))


def promised_speed(result: Result) -> float:
    """−ln of the guaranteed factor."""
    return -math.log(upper_rate(result))


def possible_speed(result: Result) -> float:
    """−ln of the lower bound's factor."""
    return -math.log(lower_rate(result))


def guaranteed(result: Result) -> float:
    """The promised speed over the measured one: at most 1 where a run is as fast as promised."""
    return promised_speed(result) / speed(result)


def share(result: Result) -> float:
    """The measured speed over −ln δ^(τ/N) an exchange, which is how fast the bound of ``pathwise`` falls in the end."""
    told = theory(result)
    return -speed(result) / (told.draws * told.tau / told.N * math.log(told.delta))


def over_printed(result: Result) -> float:
    """The measured speed over that of (14) as printed, −ln(1 − min{4τ/√(Nβ/α), 8√2/(β/α), 1}) an exchange.

    Above 1: faster than (14) allows.
    """
    told = theory(result)
    condition = told.most / told.alpha
    least = min(4 * told.tau / math.sqrt(told.N * condition), 8 * math.sqrt(2) / condition, 1.0)
    return -speed(result) / (told.draws * math.log1p(-least)) if least < 1 else 0.0


def between(result: Result) -> float:
    """The possible speed over the promised one and over √N: section 7 says that it depends on N no more."""
    return possible_speed(result) / promised_speed(result) / math.sqrt(theory(result).N)


def reach(result: Result) -> Array:
    """How many leading coordinates of w the server may know after every round: one more at most with every draw.

    Only client k − 1 (mod N) has the block that leads from coordinate k to k + 1. The first client has two coordinates
    at once, so that this is one more than K_t of appendix F.
    """
    run, told = config.experiment(result.config), theory(result)
    draw = run.selection.draws(run.seed, told.N, run.rounds).draw
    numbers, k = [1], 1
    for round in range(1, int(result.rounds["round"][-1]) + 1):
        for again in range(told.draws):
            chosen = draw(round, again)
            k += bool(chosen is None or (k - 1) % told.N in chosen)
        numbers.append(k)
    return np.array(numbers)


def pathwise(result: Result) -> float:
    """The largest (α/2) Σ_{j > k} (w*_j)² over f − f*, k of ``reach``: (43) for the clients drawn in this very run, at most 1."""
    told, found = theory(result), gap(result)
    tail = np.append(np.cumsum(told.w[::-1] ** 2)[::-1], 0.0)
    return float(np.nanmax(told.alpha / 2 * tail[np.minimum(reach(result), len(told.w))] / found))


def primal_bound(result: Result) -> float:
    """The largest f − f* over (β/2) times the bound of E‖w − w*‖², (4), or (11) with the term that (10) loses.

    (4): factor^t ‖y*‖²/(Nα²);  (11) put right: factor^t (2/(Nα)) (‖y*‖²/(2α) + what (10) leaves out).
    """
    told, found = theory(result), gap(result)
    first = float(np.sum(told.y**2)) / (2 * told.alpha) + told.lost
    bound = 2 / (told.N * told.alpha) * first * factors(result)
    return float(np.nanmax(found[1:] / (told.beta / 2 * bound)))


def printed_bound(result: Result) -> float:
    """The largest (G(y) − G*)/(factor^t (G(0) − G*)) of the run: (3), or (10) as printed."""
    found = dual_gap(result)
    return float(np.nanmax(found[1:] / (factors(result) * found[0])))


def corrected_bound(result: Result) -> float:
    """The same with the term that (10) loses added to G(0) − G*."""
    found = dual_gap(result)
    return float(np.nanmax(found[1:] / (factors(result) * (found[0] + theory(result).lost))))


def factors(result: Result) -> Array:
    """factor^t for t = 1, 2 …, never 0."""
    return np.maximum(theory(result).upper, 1e-300) ** np.arange(1, len(result.rounds["round"]))


MEASURES = {
    part.__name__: part
    for part in (
        dual_ratio,
        upper_rate,
        lower_rate,
        rate,
        speed,
        promised_speed,
        possible_speed,
        guaranteed,
        share,
        over_printed,
        between,
        pathwise,
        primal_bound,
        printed_bound,
        corrected_bound,
    )
}
COLUMNS = {"gap": gap, "dual_gap": dual_gap}
