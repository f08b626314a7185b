"""What the comparisons of all methods show beside the record: time without stragglers, and the gap over its goal."""

import math
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
import numpy as np

from benchmarks.feddcd.theory import above_rounding, theory
from mpifed import Result
from mpifed.algorithms.proxskip import ProxSkip
from mpifed.experiment import config as configuration
from mpifed.experiment.optimum import build_local_federation
from mpifed.extend import Array, stream
from mpifed.features.selection_laws.feature import Greedy
from mpifed.features.selection_laws.importance import Importance
from mpifed.features.simulated_time.device_rounds import DeviceRounds
from mpifed.features.simulated_time.devices import SimulatedDevices
from mpifed.features.simulated_time.distributions import ConstantDistribution, Lognormal
from mpifed.features.simulated_time.system import RATES, System
from mpifed.federation.participation.selection import UniformSelection
from mpifed.federation.setup import RunSpec
from mpifed.report.least_time import seconds_to
from mpifed.results.columns import ALL
from mpifed.theory import feddcd
from mpifed.theory.least_time import LeastTimeInputs, lower_bound


def symmetric(theta: Array, size: int) -> float:
    """e_size(θ), the sum over all sets of ``size`` of the products of their θ_i."""
    e = np.zeros(size + 1)
    e[0] = 1.0
    for one in theta:
        e[1:] += one * e[:-1]
    return float(e[size])


def by_importance(a: Array, beta: Array, tau: int) -> float:
    """The factor of E G − G* per iteration with Λ = diag(1/a_i) and sets S drawn ∝ Σ a_i · Π β_i/a_i over S.

    1 − Σ β · e_{τ−2}(κ without its two largest) / Σ β_i e_{τ−1}(κ without κ_i), κ_i = β_i/a_i.
    See docs/studies/selection.md.
    """
    kappa = beta / a
    kappa = kappa / kappa.max()
    rest = [symmetric(np.delete(kappa, i), tau - 1) for i in range(len(kappa))]
    least = symmetric(np.sort(kappa)[:-2], tau - 2)
    return 1 - beta.sum() * least / float(beta @ rest) / float((beta / a).max())


def by_steps(alpha: float, beta: float, N: int, tau: int) -> float:
    """The factor of E G − G* where one client of τ is uniform among those that the others leave, whoever these are.

    1 − (τ − 1)/(τ (N − τ + 1)) · α/β; see docs/studies/selection.md.
    """
    return 1 - (tau - 1) / (tau * (N - tau + 1)) * alpha / beta


EPS = 1e-3


def over_least(result: Result) -> float:
    """Simulated seconds to ‖∇f‖² <= EPS over the bound of the least time with c = 1; nan on other data."""
    data = result.config["data"]
    if data["name"] != "tridiagonal" or "asynchronous" not in result.config:
        return math.nan
    config = configuration.experiment(result.config)
    assert config.system is not None
    n, m = data["features"], data["clients"]
    L, delta = (1 + math.cos(math.pi / (n + 1))) / 2, n / (8 * (n + 1))
    tau = n / config.system.draw_property(config.seed, "speed", m)
    variance = n * result.config["problem"].get("noise", 0.0) ** 2
    setting = LeastTimeInputs(np.asarray(tau), L, delta, variance, not data.get("spread"), {})
    return seconds_to(result, EPS) / lower_bound(setting, EPS)


def seconds_without_stragglers(result: Result) -> Array:
    """Simulated seconds since the start if every client had the median of each property in [system]: (rounds + 1,).

    Rounds, messages and work are those of the run. Of a method that selects twice a round, the second selection counts
    as the first.
    """
    config = configuration.experiment(result.config)
    algorithm, sizes = config.algorithm, np.asarray(result.clients["samples"])
    assert config.system is not None
    assert result.x is not None
    model = np.zeros(len(result.x), config.dtype)
    setup = RunSpec(config.problem, algorithm, config.seed, len(sizes), model)
    schedule = DeviceRounds(SimulatedDevices(equal(config.system), setup, sizes), algorithm, len(sizes))
    seconds = [0.0]
    for round in range(1, len(result.rounds["round"])):
        schedule.begin(round)
        row = result.selection[round]
        selected = None if row[0] == ALL else row[row >= 0]
        for _ in range(algorithm.participation.selections):
            schedule.requested_clients = schedule.reply(selected, units(algorithm, config.seed, round))
            schedule.again += 1
        seconds.append(schedule.seconds)
    return np.array(seconds)


def units(algorithm: Any, seed: int, round: int) -> int:
    """How often clients do the work that a method states: the steps that the server of ProxSkip draws, else once."""
    if not isinstance(algorithm, ProxSkip):
        return 1
    assert algorithm.p is not None, "p of ProxSkip is not known here, so it must be an option"
    return int(stream(seed, "server", round).geometric(algorithm.p))


def equal(system: System) -> System:
    """The same devices with the median of each property for all clients."""
    drawn = {key: getattr(system, key) for key in (*RATES, "latency")}
    even: dict[str, Any] = {
        key: ConstantDistribution(value=median(own)) for key, own in drawn.items() if own is not None
    }
    return msgspec.structs.replace(system, jitter=0.0, **even)


def median(own: Any) -> float:
    """The median of a property."""
    assert isinstance(own, ConstantDistribution | Lognormal), f"the median of {own} is not known here"
    return own.value if isinstance(own, ConstantDistribution) else own.median


class Dual(NamedTuple):
    """What theorems on the dual speak of: α, the β_i (N,) and β = max β_i, τ of N clients, and f*."""

    alpha: float
    betas: Array
    beta: float
    tau: int
    f: float

    @property
    def N(self) -> int:
        return len(self.betas)

    @property
    def uniform(self) -> float:
        """(3)."""
        return feddcd.contraction_factor((self.tau - 1) / (self.N - 1), self.alpha, self.beta)


@lru_cache(maxsize=4)
def dual(result: Result) -> Dual:
    """The constants of a run: of quadratic f_i their own, of others the bounds that the algorithm takes, and f*."""
    run = configuration.experiment(result.config)
    if run.problem.label() == "quadratic":
        known = theory(result)
        return Dual(known.alpha, largest(result), known.beta, known.tau, known.f)
    fed, _ = build_local_federation(run)
    betas, alpha = (
        fed.inspect(method) for method in (run.algorithm.certify_smoothness, run.algorithm.certify_curvature)
    )
    return Dual(
        float(np.min(alpha)), np.ravel(betas), float(np.max(betas)), fed.clients_per_round, run.stop.optimum or 0.0
    )


def dual_gap(result: Result) -> Array:
    """G(y) − G*, nan from the first value that is rounding, or where a run has no dual objective."""
    objective = result.rounds.get("dual_objective")
    if objective is None:
        return np.full(len(result.rounds["round"]), np.nan)
    known = dual(result)
    return above_rounding(np.asarray(objective, float) + known.N * known.f)


def dual_left(result: Result) -> Array:
    """G(y) − G* over that at the start: the part of what the dual objective can lose that it still has."""
    gaps = dual_gap(result)
    return gaps / gaps[0]


def dual_rise(result: Result) -> float:
    """The largest rise of ``dual_left`` in a round; 0 where it never rises."""
    rises = np.diff(dual_left(result))
    return math.nan if np.isnan(rises).all() else max(0.0, float(np.nanmax(rises)))


def dual_factor(result: Result) -> float:
    """The measured factor of G − G* per round."""
    gaps = dual_gap(result)
    known = np.flatnonzero(~np.isnan(gaps))
    return float((gaps[known[-1]] / gaps[0]) ** (1 / known[-1])) if len(known) > 1 else math.nan


def proven_factor(result: Result) -> float:
    """The factor per round that is proven for the selection of a run; nan where none is."""
    if "dual_objective" not in result.rounds:
        return math.nan
    known, selection = dual(result), configuration.experiment(result.config).selection
    if isinstance(selection, Importance):
        return by_importance(np.full(known.N, known.alpha), known.betas, known.tau)
    if isinstance(selection, Greedy):
        return by_steps(known.alpha, known.beta, known.N, known.tau) if selection.uniform == 1 else math.nan
    return known.uniform if isinstance(selection, UniformSelection) else math.nan


def largest(result: Result) -> Array:
    """β_i of quadratic f_i: (N,)."""
    run = configuration.experiment(result.config)
    data = run.data.load(run.seed, "float64")
    X, _ = data.rows(0, data.m)
    return np.linalg.eigvalsh(np.asarray(X).reshape(data.m, data.n, data.n))[:, -1]


def over_proven(result: Result) -> float:
    """The proven speed 1 − factor over the measured one: at most 1 if a run is as fast as proven."""
    return (1 - proven_factor(result)) / (1 - dual_factor(result))


def over_theorem(result: Result) -> float:
    """The measured speed 1 − factor over that of (3), which is about uniform selection."""
    if "dual_objective" not in result.rounds:
        return math.nan
    return (1 - dual_factor(result)) / (1 - dual(result).uniform)


def gap_over_goal(result: Result) -> Array:
    """The gap over the one that methods were tuned to reach, ten times stop.objective_gap: (rounds + 1,)."""
    return np.asarray(result.rounds["objective_gap"]) / (10 * result.config["stop"]["objective_gap"])


def kilobytes_an_edge(result: Result) -> Array:
    """Kilobytes that an edge of the graph has carried, both directions together: (rounds + 1,); nan with a server."""
    return np.asarray(result.rounds["bytes_up"]) / (1e3 * result.attrs.get("graph_edges", math.nan))


def spectral_gap(result: Result) -> float:
    """1 − max(|λ₂|, |λ_m|) of the weights of the graph that was drawn first; nan with a server."""
    return float(result.attrs.get("spectral_gap", math.nan))


COLUMNS = {
    "kilobytes_an_edge": kilobytes_an_edge,
    "seconds_without_stragglers": seconds_without_stragglers,
    "gap_over_goal": gap_over_goal,
    "dual_gap": dual_gap,
    "dual_left": dual_left,
}
MEASURES = {
    f.__name__: f for f in (dual_factor, dual_rise, proven_factor, over_proven, over_theorem, spectral_gap, over_least)
}
