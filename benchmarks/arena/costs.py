"""One run in this process, and what it costs round by round under every score."""

import math
from typing import Any, NamedTuple

import numpy as np

from benchmarks.arena.plan import DRAWN, SCORES, Facts, Setting, Workload, rules, study, table
from mpifed.algorithms.bases.compressed_gradients import CompressedGradients
from mpifed.algorithms.fedadmm import FedADMM
from mpifed.algorithms.parts import LearnedHessians, packed_size
from mpifed.core.errors import RunError
from mpifed.core.typing import Array
from mpifed.data.cache import Cache
from mpifed.experiment import config as configuration
from mpifed.experiment.config import Job
from mpifed.experiment.progress import Progress
from mpifed.experiment.run import start
from mpifed.features.settings import Experiment
from mpifed.features.simulated_time.system import System
from mpifed.results.result import RunRecord

CACHE = Cache()
ACCURACY = "validation_accuracy"
WAYS = ("down", "up")
COLUMNS = ("objective", "validation_objective", ACCURACY)
NUMBER = 4  # bytes of one that travels, for everybody
RUN = 8  # bytes of one in runs


class Curve(NamedTuple):
    """A run: columns after every round (T,), and what the start and all rounds cost by score, (T,) each."""

    values: dict[str, Array]
    costs: dict[str, Array]


class Ended(NamedTuple):
    """A run with all that its costs follow from; ``tables``: the [system] of every score in seconds.

    ``before``: gradients of all clients before round one; ``trials``: whether a round may have more than one exchange.
    """

    result: RunRecord
    config: Experiment
    tables: dict[str, dict[str, Any]]
    before: float
    trials: bool


class Watch(Progress):
    """Ends a run at its last goal."""

    def __init__(self, known: Facts) -> None:
        super().__init__(None)
        self.goals = known.goals
        self.left = set(zip(known.columns, known.goals, strict=True))

    def show(self, round: int, rounds: int, row: dict[str, float]) -> None:
        self.left -= {
            (column, level) for column, level in self.left if column in row and met(column, row[column], level)
        }
        if self.goals and not self.left:
            self.stop = "the goals are reached"


def met(column: str, values: Any, level: float) -> Any:
    """Whether values of a column are as good as a level: accuracies at least, all else at most."""
    return values >= level if column == ACCURACY else values <= level


def systems(known: Facts, passes: float | None) -> dict[str, dict[str, Any]]:
    """The tables [system] of the three scores in seconds. ``passes``: of a method that cannot tell its own."""
    ticks = rules().system
    rates = {
        "speed": known.samples / ticks.tick,
        "bandwidth_down": RUN * known.n / ticks.tick,
        "bandwidth_up": RUN * known.n / ticks.tick,
    }
    equal = rates | {"latency": ticks.tick / 2} | ({} if passes is None else {"passes": passes})
    spread = {key: {"name": "lognormal", "median": value, "sigma": ticks.lognormal} for key, value in rates.items()}
    away = {"name": "pareto", "scale": ticks.tick / 2, "shape": ticks.pareto}
    return {"equal": equal, "lognormal": equal | spread, "pareto": equal | {"latency": away}}


def run(workload: Workload, known: Facts, one: Setting, seed: int) -> Ended | None:
    """Run a try until its last goal or round; None where it diverges."""
    curvature = rules().curvature
    passes = 1 + curvature.passes * known.n if table(one.method).get("curvature") else None
    tables = systems(known, passes)
    own = study(workload, one, seed)
    config = configuration.experiment(own | {"system": tables["equal"] | own.get("system", {})})
    try:
        recorder = start(Job(config), None, Watch(known), CACHE)
    except RunError:
        return None
    assert recorder is not None
    found, of = recorder.result(), table(one.method)
    # A class of a user's own says neither: what its ledger has before round one is a gradient.
    before = float(of.get("before", found.rounds["exchanges"][0] > 0))
    return Ended(found, config, tables, before, bool(of.get("curvature")) or ":" in of["name"])


def curve(of: Ended, seed: int) -> Curve:
    """Columns and costs of a run, whose [system] is that of equal devices, on devices that ``seed`` draws.

    A gradient and an exchange before round one count in all scores, and so does every further exchange of a round, at
    which clients compute f_i.
    """
    result, config = of.result, of.config
    rows = selections(result, config)
    times = {score: Times(System.build(of.tables[score], "system"), result, config, seed) for score in SCORES[2:]}
    units = done(result, config, rows)
    more = (
        np.maximum(np.diff(np.asarray(result.rounds["exchanges"], float)) - 1, 0) if of.trials else np.zeros(len(rows))
    )
    if units is None:
        units = times["equal"].units(rows, np.diff(result.rounds["simulated_seconds"]))
    work, total = times["equal"].work, float(np.sum(result.clients["samples"]))
    passes = [unit * float(work[who].sum()) / total for who, unit in zip(rows, units, strict=True)]
    first = of.before * float(work.sum()) / total
    costs = {"bits": bits(result, config, of.before), "passes": running(first, passes + rules().curvature.value * more)}
    for score, one in times.items():
        costs[score] = running(one.start(of.before), np.array(one.rounds(rows, units)) + one.trials(more))
    columns = {key: np.asarray(value, float) for key, value in result.rounds.items() if key in COLUMNS}
    return Curve(columns, costs)


def bits(result: RunRecord, config: Experiment, before: float) -> Array:
    """Bits up and down so far, as if every number had 32 bits."""
    assert result.x is not None
    n, found = result.x.size, np.zeros(len(result.rounds["bits_up"]))
    for way in WAYS:
        ran, counted = (message(config, way, n, number) for number in (RUN, NUMBER))
        sent = np.asarray(result.rounds[f"bits_{way}"], float)
        if before and way == "up" and not sent[0]:
            sent = sent + ran * result.m  # what the ledger leaves out
        found += sent * counted / ran
    return found


def message(config: Experiment, way: str, n: int, number: int) -> float:
    """The bits of what a client receives or sends in a round, with ``number`` bytes for a number."""
    algorithm: Any = config.algorithm
    numbers = algorithm.message_size(n)[way == "up"]
    C = None if config.compress is None else config.compress.by_direction().get(way)
    if C is not None:
        vectors = numbers // n
        return float(vectors * C.bits(n, number) + 8 * number * (numbers - vectors * n))
    if way == "up" and isinstance(algorithm, CompressedGradients):
        return float(algorithm.compressor.bits(n, number))
    if way == "up" and isinstance(algorithm, LearnedHessians):
        return float(algorithm.compressor.bits(packed_size(n), number, symmetric=True) + 8 * number * (n + 1))
    return float(8 * number * numbers)


def done(result: RunRecord, config: Experiment, rows: list[Array]) -> list[float] | None:
    """FedADMM's share of the work that its rules allow, by the inner steps that all clients of a round took.

    The first gradient of all k0 iterations is the same, so steps s make 1 + s − k0 passes of a client.
    """
    algorithm = config.algorithm
    if not isinstance(algorithm, FedADMM):
        return None
    steps = np.diff(result.rounds["inner_steps"]) / [max(1, len(who)) for who in rows]
    most = float(algorithm.sample_gradients(np.ones(1))[0])
    found: list[float] = ((1 + steps - algorithm.k0) / most).tolist()
    return found


def selections(result: RunRecord, config: Experiment) -> list[Array]:
    """The ids of those who compute in every round, from the first one."""
    if not config.algorithm.participation.selections:
        return [np.arange(result.m)] * result.cr
    return [result.selected(round) for round in range(1, result.cr + 1)]


def running(first: float, values: Any) -> Array:
    """Sums up to every round, from ``first`` in round 0: (T,)."""
    return first + np.concatenate([[0.0], np.cumsum(values)])


class Times:
    """How long the clients of a run take on the devices of a system; what a round takes is as in ``DeviceRounds``."""

    def __init__(self, system: System, result: RunRecord, config: Experiment, seed: int) -> None:
        sizes = np.asarray(result.clients["samples"])
        m = len(sizes)
        assert result.x is not None
        n = result.x.size
        drawn = {
            key: system.draw_property(seed, key, m) for key in ("speed", "bandwidth_down", "bandwidth_up", "latency")
        }
        self.work = system.count_work(config.algorithm, sizes)
        self.computing = self.work / drawn["speed"]
        self.once = sizes / drawn["speed"]
        self.latency = 2 * drawn["latency"]
        # Bandwidths are of numbers with RUN bytes; the run itself took these, the score takes NUMBER bytes.
        scale = RUN / NUMBER
        pace = 1 / drawn["bandwidth_down"], 1 / drawn["bandwidth_up"]
        self.ran, self.away = (
            self.latency
            + sum(message(config, way, n, number) / 8 * factor * one for way, one in zip(WAYS, pace, strict=True))
            for number, factor in ((RUN, 1.0), (NUMBER, scale))
        )
        self.model = n * RUN * pace[0]
        self.everyone = config.algorithm.participation.everyone

    def start(self, before: float) -> float:
        """The seconds of what all clients compute and send before round one."""
        return float((self.away + before * self.computing).max()) if before else 0.0

    def trials(self, more: Array) -> Array:
        """The seconds of so many further exchanges in each round, at which clients receive a model and send f_i.

        The model of the first one is in the message of the method.
        """
        one = float((self.latency + rules().curvature.value * self.once).max())
        return more * one + np.maximum(more - 1, 0) * float(np.max(self.model))

    def waited(self, who: Array) -> Any:
        """Whom the server waits for."""
        return slice(None) if self.everyone else who

    def units(self, rows: list[Array], seconds: Array) -> list[float]:
        """How often the work was done in each round, from the ``seconds`` of rounds on equal devices."""
        found = []
        for who, T in zip(rows, seconds.tolist(), strict=True):
            slowest = float(self.computing[self.waited(who)].max())
            found.append(float(max(1, round((T - float(self.ran[0])) / slowest))))
        return found

    def rounds(self, rows: list[Array], units: list[float]) -> list[float]:
        """The seconds of each round."""
        whole = zip(rows, units, strict=True)
        return [float((self.away + unit * self.computing)[self.waited(who)].max()) for who, unit in whole]


def hits(found: Curve | None, known: Facts) -> dict[str, list[float]]:
    """The cost of each goal by score: in the first round that reaches it; inf for a miss."""
    costs: dict[str, list[float]] = {score: [] for score in SCORES}
    for column, goal in zip(known.columns, known.goals, strict=True):
        reached = np.zeros(1, bool) if found is None else met(column, found.values[column], goal)
        first = int(np.argmax(reached)) if reached.any() else None
        for score in SCORES:
            costs[score].append(math.inf if found is None or first is None else float(found.costs[score][first]))
    return costs


def one_of_each(score: str, random: bool) -> bool:
    """Whether all seeds have the same cost: nothing is drawn, and devices are not."""
    return not random and score not in DRAWN
