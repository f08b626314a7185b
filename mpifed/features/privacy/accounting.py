"""The ε that rounds with Gaussian noise cost, and the noise that an ε allows, by the library dp-accounting."""

import logging
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from mpifed.algorithms.parts.budget import import_accounting
from mpifed.core.errors import UserError
from mpifed.core.typing import Array

Accountant = Literal["pld", "rdp"]
ACCOUNTANTS: tuple[Accountant, ...] = ("pld", "rdp")
PRECISION = 1e-4  # relative: of ε by "pld", and of a noise multiplier that is solved for
SMALLEST = 1e-2  # the least and the largest noise multiplier that is solved for
LARGEST = 1e6
BITS = 5  # of the numbers of rounds that ``epsilon_bound`` takes
TINY = 1e-300  # an ε of 0
HUGE = 500.0  # an ε of "rdp" from which on "pld" has the same: the distributions would be long, and protect nobody


class PrivateRounds(Protocol):
    """Rounds that release noisy sums: who is told apart, and the ε of so many, by each of the ``accountants``."""

    @property
    def noise_multiplier(self) -> float: ...
    @property
    def probability(self) -> float | None: ...
    @property
    def accountants(self) -> tuple[Accountant, ...]: ...

    def epsilon(self, rounds: int, delta: float, by: Accountant = ...) -> float:
        """Return the ε of ``rounds`` at ``delta``, infinite without noise."""

    def epsilon_bound(self, rounds: int, delta: float, by: Accountant = ...) -> float:
        """Return the ε of ``rounds``, or a little more, for a run that asks in each round."""


class GaussianRounds(NamedTuple):
    """Rounds that release a sum of vectors, each at most C long, with Gaussian noise of deviation zC.

    Where each client is there with ``probability`` q (Poisson sampling), neighbours differ by one client that is added
    or removed, and sampling amplifies. Otherwise (None) a client is replaced, which moves the sum by up to 2C, and
    ``rounds`` are those in which it took part; nothing is amplified.

    Sources: of "pld" V. Doroshenko, B. Ghazi, P. Kamath, R. Kumar, P. Manurangsi, arXiv:2207.04380 (2022), without
    sampling B. Balle, Y.-X. Wang, arXiv:1805.06530 (2018); of "rdp" I. Mironov, K. Talwar, L. Zhang, arXiv:1908.10530
    (2019), and C. Canonne, G. Kamath, T. Steinke, arXiv:2004.00010 (2020), Proposition 12.
    """

    noise_multiplier: float
    probability: float | None = None

    @property
    def accountants(self) -> tuple[Accountant, ...]:
        """Return by what ε is computed, the smallest first."""
        return ACCOUNTANTS

    @property
    def relation(self) -> str:
        """Return the neighbouring relation."""
        return "replace" if self.probability is None else "add or remove"

    def epsilon(self, rounds: int, delta: float, by: Accountant = "pld") -> float:
        """Return the ε of ``rounds`` at ``delta``, infinite without noise; raise UserError without dp-accounting."""
        if not rounds or not self.probability_of_client():
            return 0.0
        if not self.noise_multiplier:
            return math.inf
        if by == "rdp" or self.probability_of_client() < 1:
            return sampled_epsilon(self.deviation(), self.probability_of_client(), rounds, delta, by)
        # a sum of rounds without sampling is one Gaussian mechanism, whose ε is known exactly
        with np.errstate(divide="ignore"):
            return float(import_accounting().get_epsilon_gaussian(self.deviation() / math.sqrt(rounds), delta))

    def epsilon_bound(self, rounds: int, delta: float, by: Accountant = "pld") -> float:
        """Return the ε of ``rounds``, which are rounded up by at most 6.3 % where an ε takes long to compute.

        A run that asks each round computes few of them, 166 in 10,000 rounds.
        """
        if by == "rdp" or self.probability_of_client() == 1:
            return self.epsilon(rounds, delta, by)
        step = 1 << max(rounds.bit_length() - BITS, 0)
        return self.epsilon(-(-rounds // step) * step, delta, by)

    def probability_of_client(self) -> float:
        """Return the probability that a client takes part in a round that is counted."""
        return 1.0 if self.probability is None else self.probability

    def deviation(self) -> float:
        """Return the deviation of the noise over the distance of neighbouring sums."""
        return self.noise_multiplier / 2 if self.probability is None else self.noise_multiplier


def solve_noise_multiplier(
    make_rounds: Callable[[float], PrivateRounds], epsilon: float, delta: float, rounds: int
) -> float:
    """Return the smallest noise multiplier, rounded up by 1e-4, with which ``rounds`` cost at most ``epsilon``.

    ``make_rounds`` returns the rounds with a multiplier, whose first accountant counts.

    Raises UserError where none up to 10^6 does.
    """

    low = SMALLEST
    high = LARGEST
    goal = math.log(epsilon * (1 - PRECISION / 2))
    here = math.log(guess_noise_multiplier(make_rounds(1.0).probability, epsilon, delta, rounds))
    before = excess_before = math.nan
    slope = -2.0
    # an ε may take a tenth of a second, so the secant of logarithms comes first; halving where it leaves the bracket
    while high > low * (1 + PRECISION):
        if not math.log(low) < here < math.log(high):
            here = math.log(low * high) / 2
        multiplier = math.exp(here)
        mechanism = make_rounds(multiplier)
        found = mechanism.epsilon(rounds, delta, mechanism.accountants[0])
        low, high = (multiplier, high) if found > epsilon else (low, multiplier)
        if epsilon * (1 - PRECISION) <= found <= epsilon:
            break
        excess = math.log(max(found, TINY)) - goal if found < math.inf else math.nan
        if before != here and (excess - excess_before) / (here - before) < 0:
            slope = (excess - excess_before) / (here - before)
        before, excess_before = here, excess
        here -= excess / slope
    if high == LARGEST:
        raise UserError(
            f"privacy.epsilon = {epsilon:g} is wrong: {rounds} rounds at delta = {delta:g} cost more than that with "
            f"any noise_multiplier up to {LARGEST:g}, so take a larger epsilon or fewer rounds"
        )
    return high


def guess_noise_multiplier(probability: float | None, epsilon: float, delta: float, rounds: int) -> float:
    """Return the noise multiplier of a limit of many rounds: normal laws μ = q √(T (exp(1/z²) − 1)) apart."""
    from scipy.optimize import brentq  # slow to import, and for a given ε alone
    from scipy.special import log_ndtr, ndtr

    def excess(mu: float) -> float:
        return float(ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon + log_ndtr(-epsilon / mu - mu / 2)) - delta)

    steps = float(brentq(excess, 1e-12, 50 + epsilon)) / math.sqrt(rounds)
    if probability is None or probability == 1:
        return (2 if probability is None else 1) / steps
    return 1 / math.sqrt(math.log1p((steps / probability) ** 2))


def split_multiplier(noise_multiplier: float, count_noise: float) -> float:
    """Return the noise multiplier z_Δ of changes beside a noisy count of clipped clients, so that both cost z together.

    z_Δ = (z⁻² − (2σ_b)⁻²)^(−1/2), with σ_b the deviation of the noise on the sum of b_i − ½, which a client moves by ½
    (G. Andrew, O. Thakkar, H. B. McMahan, S. Ramaswamy, arXiv:1905.03871 (2021), Theorem 1).

    Raises UserError where σ_b is so small that the count costs more than z.
    """
    if not noise_multiplier:
        return 0.0
    if 2 * count_noise <= noise_multiplier:
        raise UserError(
            f"privacy.count_noise = {count_noise:g} is wrong with a noise multiplier of {noise_multiplier:g}: it must "
            f"be more than half of that, {noise_multiplier / 2:g}, or the count of clipped clients costs all there is"
        )
    return float((noise_multiplier**-2 - (2 * count_noise) ** -2) ** -0.5)


def epsilon_of_rdp(orders: Sequence[float] | Array, rdp: Sequence[float] | Array, delta: float) -> float:
    """Return the ε at ``delta`` of a mechanism with the Rényi divergence ``rdp`` at each of ``orders``."""
    return float(import_accounting().rdp.compute_epsilon(orders, rdp, delta)[0])


@lru_cache(maxsize=4096)
def sampled_epsilon(deviation: float, probability: float, rounds: int, delta: float, by: Accountant) -> float:
    """Return the ε of ``rounds`` of a Gaussian mechanism under Poisson sampling."""
    orders, curve = renyi_curve(deviation, probability)
    renyi = epsilon_of_rdp(list(orders), rounds * curve, delta)
    if by == "rdp" or not 0 < renyi < HUGE:
        return renyi
    # a grid of width h adds about rounds·h²/ε to ε; powers of two, so that distributions of one round are shared
    width = max(min(math.sqrt(PRECISION / rounds) * renyi, 2.0**-10), renyi * 2e-4)
    loss = privacy_loss(deviation, probability, 2.0 ** math.floor(math.log2(width)))
    return float(loss.self_compose(rounds).get_epsilon_for_delta(delta))


@lru_cache(maxsize=64)
def renyi_curve(deviation: float, probability: float) -> tuple[Array, Array]:
    """Return the orders, and the Rényi divergences of one round."""
    library = import_accounting()
    accountant = library.rdp.RdpAccountant()
    log = logging.getLogger("absl")
    level = log.level
    # it warns of orders that it leaves out, which makes ε larger, but not wrong
    log.setLevel(logging.ERROR)
    accountant.compose(library.PoissonSampledDpEvent(probability, library.GaussianDpEvent(deviation)))
    log.setLevel(level)
    return accountant.orders, accountant.rdp


@lru_cache(maxsize=16)
def privacy_loss(deviation: float, probability: float, width: float) -> Any:
    """Return the distribution of the privacy loss of one round, rounded up to a grid of ``width``."""
    library = import_accounting()
    return library.pld.privacy_loss_distribution.from_gaussian_mechanism(
        deviation, sampling_prob=probability, value_discretization_interval=width
    )
