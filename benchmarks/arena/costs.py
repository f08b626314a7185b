"""One run in this process, and what it costs round by round under every score."""

import math
from typing import Any, NamedTuple

import numpy as np

from benchmarks.arena.plan import DRAWN, SCORES, Facts, Setting, Workload, rules, study, table
from mpifed.algorithms.fedadmm import FedADMM
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
NUMBER = 8  # bytes of one


class Curve(NamedTuple):
    """A run: f after every round (T,), and what all rounds up to it cost by score, (T,) each."""

    f: Array
    costs: dict[str, Array]


class Ended(NamedTuple):
    """A run with all that its costs follow from; ``tables``: the [system] of every score in seconds."""

    result: RunRecord
    config: Experiment
    tables: dict[str, dict[str, Any]]


class Watch(Progress):
    """Ends a run at its last goal."""

    def __init__(self, known: Facts) -> None:
        super().__init__(None)
        self.goal = known.goals[-1] if known.goals else -math.inf

    def show(self, round: int, rounds: int, row: dict[str, float]) -> None:
        if row.get("objective", math.inf) <= self.goal:
            self.stop = "the goal is reached"


def systems(known: Facts, passes: float | None) -> dict[str, dict[str, Any]]:
    """The tables [system] of the three scores in seconds. ``passes``: of a method that cannot tell its own."""
    ticks = rules().system
    rates = {
        "speed": known.samples / ticks.tick,
        "bandwidth_down": NUMBER * known.n / ticks.tick,
        "bandwidth_up": NUMBER * known.n / ticks.tick,
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
    return Ended(recorder.result(), config, tables)


def curve(of: Ended, seed: int) -> Curve:
    """f and the costs of a run, whose [system] is that of equal devices, on devices that ``seed`` draws."""
    result, config = of.result, of.config
    f = np.asarray(result.rounds["objective"], float)
    bits = np.asarray(result.rounds["bits_up"], float) + np.asarray(result.rounds["bits_down"], float)
    rows = selections(result, config)
    times = {score: Times(System.build(of.tables[score], "system"), result, config, seed) for score in SCORES[2:]}
    units = done(result, config, rows)
    if units is None:
        units = times["equal"].units(rows, np.diff(result.rounds["simulated_seconds"]))
    work, total = times["equal"].work, float(np.sum(result.clients["samples"]))
    passes = [unit * float(work[who].sum()) / total for who, unit in zip(rows, units, strict=True)]
    seconds = {score: one.rounds(rows, units) for score, one in times.items()}
    return Curve(f, {"bits": bits, "passes": running(passes), **{key: running(of) for key, of in seconds.items()}})


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


def running(values: Any) -> Array:
    """Sums up to every round, from 0 in round 0: (T,)."""
    return np.concatenate([[0.0], np.cumsum(values)])


class Times:
    """How long the clients of a run take on the devices of a system; what a round takes is as in ``DeviceRounds``."""

    def __init__(self, system: System, result: RunRecord, config: Experiment, seed: int) -> None:
        sizes = np.asarray(result.clients["samples"])
        m = len(sizes)
        assert result.x is not None
        down, up = (numbers * NUMBER for numbers in config.algorithm.message_size(result.x.size))
        drawn = {
            key: system.draw_property(seed, key, m) for key in ("speed", "bandwidth_down", "bandwidth_up", "latency")
        }
        self.work = system.count_work(config.algorithm, sizes)
        self.computing = self.work / drawn["speed"]
        self.away = 2 * drawn["latency"] + down / drawn["bandwidth_down"] + up / drawn["bandwidth_up"]
        self.everyone = config.algorithm.participation.everyone

    def waited(self, who: Array) -> Any:
        """Whom the server waits for."""
        return slice(None) if self.everyone else who

    def units(self, rows: list[Array], seconds: Array) -> list[float]:
        """How often the work was done in each round, from the ``seconds`` of rounds on equal devices."""
        found = []
        for who, T in zip(rows, seconds.tolist(), strict=True):
            slowest = float(self.computing[self.waited(who)].max())
            found.append(float(max(1, round((T - float(self.away[0])) / slowest))))
        return found

    def rounds(self, rows: list[Array], units: list[float]) -> list[float]:
        """The seconds of each round."""
        whole = zip(rows, units, strict=True)
        return [float((self.away + unit * self.computing)[self.waited(who)].max()) for who, unit in whole]


def hits(found: Curve | None, known: Facts) -> dict[str, list[float]]:
    """The cost of each goal by score: in the first round with f at most the goal; inf for a miss."""
    costs: dict[str, list[float]] = {score: [] for score in SCORES}
    for goal in known.goals:
        met = np.zeros(1, bool) if found is None else found.f <= goal
        first = int(np.argmax(met)) if met.any() else None
        for score in SCORES:
            costs[score].append(math.inf if found is None or first is None else float(found.costs[score][first]))
    return costs


def one_of_each(score: str, random: bool) -> bool:
    """Whether all seeds have the same cost: nothing is drawn, and devices are not."""
    return not random and score not in DRAWN
