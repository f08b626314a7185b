"""Plug-in of the table [privacy]: who can be made private, how much noise a run has, and which ε it has spent."""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

from mpifed.algorithms.parts import import_accounting
from mpifed.core.discrete_noise import MIN_STEPS
from mpifed.core.errors import UserError
from mpifed.core.promises import Reasons, Supports
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.features.feature import Plugin
from mpifed.features.privacy.accounting import PrivateRounds, solve_noise_multiplier, split_multiplier
from mpifed.features.privacy.conflicts import PRIVATE_MEANS
from mpifed.features.privacy.mechanisms import SumSizes
from mpifed.features.privacy.private_means import PrivateMeans
from mpifed.features.privacy.statement import describe_neighbours, describe_privacy
from mpifed.features.privacy.transform import ClippedSums, Noise
from mpifed.federation.callback import Callback, ClientTable
from mpifed.federation.participation.selection import Selector
from mpifed.federation.schedule import Schedule
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec


class ClientPrivacy(Plugin, Callback):
    """Private means of what clients upload, in place of the plain ones, and the ε that they have spent."""

    # Its transform and its mechanism speak for themselves.
    supports = Supports.EVERYTHING & ~Supports.DEVICES
    unsupported: ClassVar[Reasons] = {Supports.DEVICES: "private means are computed in memory"}
    conflicts = PRIVATE_MEANS

    selector: Selector
    m = 0
    layers: tuple[slice, ...] = ()  # of what travels
    sums: ClippedSums  # the server's end
    sizes: SumSizes
    rounds: PrivateRounds  # what each round releases
    replayed = 0  # rounds that were run again with new noise

    @property
    def table(self) -> PrivateMeans:
        assert self.config.privacy is not None
        return self.config.privacy

    def prepare(self, setup: RunSpec, data: Dataset) -> RunSpec:
        if self.table.noise_multiplier != 0:
            import_accounting()
        if self.table.max_weight is not None and setup.client_weights is None:
            raise UserError(
                f"privacy.max_weight = {self.table.max_weight:g} is wrong: uploads have no weights here; in methods "
                'that average models objective.weights = "samples" gives them some'
            )
        self.m = setup.m
        self.layers = find_layers(setup, data) if self.table.per == "layer" else ()
        return setup

    def schedule(self, setup: RunSpec, data: Dataset, selector: Selector) -> Schedule | None:
        self.selector = selector
        return None

    def transforms(self, setup: RunSpec, fed: Federation | None) -> list[ClippedSums]:
        sums = ClippedSums(setup, self.table, self.layers)
        if fed is not None:
            fed.plays_empty_rounds = True  # an empty sum has noise too
            noise = self.find_noise(setup, sums.weights)
            sums.serve(noise, fed, self.sizes)
            self.check_masks(noise.multiplier)
            self.sums = sums
        return [sums]

    def find_sizes(self, setup: RunSpec) -> SumSizes:
        """Return the sizes of the sums of a run."""
        masks = self.config.masks
        system = self.config.system
        drawn = self.selector.probability is not None
        most = self.m if drawn else self.selector.size
        fewest = 0 if drawn else most
        if system is not None and system.absence():
            fewest = min(fewest, system.least)
        numbers = setup.algorithm.upload.vectors * setup.shared_start.size
        return SumSizes(numbers, fewest, most, 0 if masks is None else masks.bits)

    def find_noise(self, setup: RunSpec, weights: Array | None) -> Noise:
        """Return the noise of the run, and what its sums are divided by; solve for the multiplier where ε is given."""
        self.sizes = self.find_sizes(setup)
        probability = self.selector.probability
        share = self.selector.size / self.m if probability is None else probability
        total = float(self.m if weights is None else weights.sum())
        z = self.table.noise_multiplier

        def make_rounds(multiplier: float) -> PrivateRounds:
            return self.table.mechanism.rounds(multiplier, probability, self.sizes)

        if z is None:
            assert self.table.epsilon is not None
            z = solve_noise_multiplier(make_rounds, self.table.epsilon, self.table.delta, self.count_ahead())
        self.rounds = make_rounds(z)
        count = 0.0
        if self.table.quantile is not None and z:
            count = share * self.m / 20 if self.table.count_noise is None else self.table.count_noise
            if self.table.count_noise is None and 2 * count <= z:
                raise UserError(
                    f"privacy.quantile = {self.table.quantile:g} needs count_noise above {z / 2:.4g}, half of "
                    f"the noise multiplier: it is {count:.4g}, a twentieth of the {share * self.m:g} clients expected"
                )
            z = split_multiplier(z, count)
        return Noise(z, count, share * total, share * self.m)

    def check_masks(self, multiplier: float) -> None:
        """Raise UserError for masks that cannot add up the whole numbers of some clients: a run must not find out."""
        masks = self.config.masks
        gridded = multiplier and self.table.noise_seed is None and not self.table.mechanism.under_masks
        if masks is None or masks.sums == "float" or not gridded:
            return
        fixed = masks.fixed_point
        longest = MIN_STEPS / multiplier
        most = self.sizes.most
        if longest > fixed.limit(most):
            fits = fixed.maximum_fraction(longest, most)
            raise UserError(
                f"masks.fraction = {fixed.fraction} is wrong with privacy: clients send whole numbers up to "
                f"{longest:.4g}, and a sum of {most} clients in {fixed.bits} bits takes entries up to "
                f"{fixed.limit(most):.4g}; it must be at most {max(fits, 0)}"
                + (", and masks.bits larger" if fits < 0 else "")
            )

    def count_ahead(self) -> int:
        """Return the rounds to account for of all that are planned, as ``count_spent`` does of those that were run."""
        if self.selector.probability is not None:
            return self.config.rounds
        times = np.zeros(self.m, np.int64)
        for round in range(1, self.config.rounds + 1):
            selected = self.selector.select(round, 0)
            times[slice(None) if selected is None else selected] += 1
        return int(times.max())

    def notes(self) -> Iterator[str]:
        if self.table.guarantee().holds:
            yield describe_neighbours(self.selector.probability)
            if self.table.delta * self.m >= 1:
                yield (
                    f"privacy.delta = {self.table.delta:g} is not below 1/m = {1 / self.m:.3g}: it allows to publish "
                    "all data of a client drawn at random, so take a smaller one"
                )
        if self.table.quantile is not None and not self.table.noise_multiplier and self.table.epsilon is None:
            yield "privacy.quantile: the bound follows exact counts, for there is no noise"

    def attributes(self, replayed: int) -> dict[str, Any]:
        self.replayed = replayed
        return {}

    def on_evaluate(self, fed: Federation, x: Array) -> dict[str, float | ClientTable]:
        spent = self.count_spent(fed.round, fed.times_selected, self.replayed if fed.round else 0)
        columns: dict[str, float | ClientTable] = {}
        if self.rounds.noise_multiplier:
            # the last one is exact; those before are rounded up, or they would cost as much as the rounds
            spend = self.rounds.epsilon if fed.round == self.config.rounds else self.rounds.epsilon_bound
            columns |= {f"epsilon_{by}": spend(spent, self.table.delta, by) for by in self.rounds.accountants}
        if self.table.quantile is not None:
            columns["clip"] = self.sums.bound
        return columns

    def count_spent(self, rounds: int, times_selected: Array, replayed: int) -> int:
        """Return the rounds to account for: all under Poisson sampling, else those of the client with most."""
        return replayed + (rounds if self.selector.probability is not None else int(times_selected.max()))


def describe_study(features: Iterable[Plugin], setup: RunSpec, run: tuple[int, Array, int] | None = None) -> str:
    """Return the privacy of a study in ten lines: after its ``run``, as ``count_spent`` takes it, or all rounds."""
    plugin = next(one for one in features if isinstance(one, ClientPrivacy))
    sums = plugin.transforms(setup, None)[0]
    noise = plugin.find_noise(setup, sums.weights)
    spent = plugin.count_ahead() if run is None else plugin.count_spent(*run)
    return describe_privacy(plugin.table, noise, plugin.rounds, spent, sums.heaviest)


def find_layers(setup: RunSpec, data: Dataset) -> tuple[slice, ...]:
    """Return where the arrays of a network's parameters stand in what travels; UserError for other problems."""
    sizes = list(setup.problem.parameter_sizes(data).values())
    if not sizes:
        raise UserError(
            f'privacy.per = "layer" is wrong: {setup.problem.label()} is no network and has no layers, so it must be '
            '"model"'
        )
    ends = np.cumsum([0, *sizes])
    travels = np.ones(ends[-1], bool) if setup.home is None else ~setup.home
    moved = np.append(0, np.cumsum(travels))[ends].tolist()  # the same places among what travels
    return tuple([slice(a, b) for a, b in pairwise(moved) if a < b])
