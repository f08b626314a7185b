"""One run in this process, and what it costs round by round under every score."""

import math
from typing import Any, NamedTuple

import msgspec
import numpy as np

from benchmarks.arena.plan import SCORES, Facts, Setting, Workload, rules, study, table
from mpifed.core.errors import Trouble
from mpifed.core.typing import Array
from mpifed.data.cache import Cache
from mpifed.experiment import config as configuration
from mpifed.experiment.job import Job
from mpifed.experiment.progress import Progress
from mpifed.experiment.run import start
from mpifed.features.settings import Experiment
from mpifed.features.simulated_time.system import System
from mpifed.results.result import Result

CACHE = Cache()
BITS = 8  # of a byte
NUMBER = 8  # bytes of one


class Curve(NamedTuple):
    """A run: f after every round (T,), and what all rounds up to it cost by score, (T,) each."""

    f: Array
    costs: dict[str, Array]


class Watch(Progress):
    """Ends a run at its last goal, or when it has spent more bits, passes and seconds than count."""

    def __init__(self, known: Facts, passes: float) -> None:
        super().__init__(None)
        self.goal = known.goals[-1] if known.goals else -math.inf
        self.passes = passes  # of a round, as expected
        cap = rules().goal.cap
        self.caps = {score: cap * of[-1] for score, of in known.reference.items()}

    def show(self, round: int, rounds: int, row: dict[str, float]) -> None:
        if row.get("objective", math.inf) <= self.goal:
            self.stop = "the goal is reached"
        if not self.caps:
            return
        bits = row["bits_up"] + row["bits_down"]
        spent = bits > self.caps["bits"] and row["simulated_seconds"] > self.caps["equal"]
        if spent and round * self.passes > self.caps["passes"]:
            self.stop = "the caps are spent"


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


def run(workload: Workload, known: Facts, one: Setting, seed: int, rounds: int | None = None) -> Curve | None:
    """Run a try until its last goal or cap, or for exactly so many ``rounds``; None where it diverges."""
    curvature = rules().curvature
    passes = 1 + curvature.passes * known.n if table(one.method).get("curvature") else None
    tables = systems(known, passes)
    experiment = study(workload, one, seed) | {"system": tables["equal"]}
    if rounds is not None:
        experiment["rounds"] = rounds
        known = msgspec.structs.replace(known, goals=[], reference={})
    config = configuration.experiment(experiment)
    progress = Watch(known, known.share * mean_passes(config, known, passes))
    try:
        recorder = start(Job(config), None, progress, CACHE)
    except Trouble:
        return None
    assert recorder is not None
    return curve(recorder.result(), config, tables)


def mean_passes(config: Experiment, known: Facts, passes: float | None) -> float:
    """Passes of a mean client in a round, as expected."""
    if passes is not None:
        return passes
    work = config.algorithm.work(np.array([known.samples]))
    assert work is not None
    return float(work[0]) / known.samples * getattr(config.algorithm, "units", lambda: 1.0)()


def curve(result: Result, config: Experiment, tables: dict[str, dict[str, Any]]) -> Curve:
    """f and the costs of a run, whose [system] is that of equal devices."""
    f = np.asarray(result.rounds["objective"], float)
    bits = np.asarray(result.rounds["bits_up"], float) + np.asarray(result.rounds["bits_down"], float)
    rows = selections(result, config)
    times = {score: Times(System.build(tables[score], "system"), result, config) for score in SCORES[2:]}
    units = times["equal"].units(rows, np.diff(result.rounds["simulated_seconds"]))
    work, total = times["equal"].work, float(np.sum(result.clients["samples"]))
    passes = [unit * float(work[who].sum()) / total for who, unit in zip(rows, units, strict=True)]
    seconds = {score: one.rounds(rows, units) for score, one in times.items()}
    return Curve(f, {"bits": bits, "passes": running(passes), **{key: running(of) for key, of in seconds.items()}})


def selections(result: Result, config: Experiment) -> list[Array]:
    """The ids of those who compute in every round, from the first one."""
    if not config.algorithm.takes.selections:
        return [np.arange(result.m)] * result.cr
    return [result.selected(round) for round in range(1, result.cr + 1)]


def running(values: Any) -> Array:
    """Sums up to every round, from 0 in round 0: (T,)."""
    return np.concatenate([[0.0], np.cumsum(values)])


class Times:
    """How long the clients of a run take on the devices of a system; what a round takes is as in ``DeviceRounds``."""

    def __init__(self, system: System, result: Result, config: Experiment) -> None:
        sizes = np.asarray(result.clients["samples"])
        seed, m = config.seed, len(sizes)
        assert result.x is not None
        down, up = (numbers * NUMBER for numbers in config.algorithm.traffic(result.x.size))
        drawn = {key: system.drawn(seed, key, m) for key in ("speed", "bandwidth_down", "bandwidth_up", "latency")}
        self.work = system.worked(config.algorithm, sizes)
        self.computing = self.work / drawn["speed"]
        self.away = 2 * drawn["latency"] + down / drawn["bandwidth_down"] + up / drawn["bandwidth_up"]
        self.everyone = config.algorithm.takes.everyone

    def waited(self, who: Array) -> Any:
        """Whom the server waits for."""
        return slice(None) if self.everyone else who

    def units(self, rows: list[Array], seconds: Array) -> list[int]:
        """How often the work was done in each round, from the ``seconds`` of rounds on equal devices."""
        found = []
        for who, T in zip(rows, seconds.tolist(), strict=True):
            slowest = float(self.computing[self.waited(who)].max())
            found.append(max(1, round((T - float(self.away[0])) / slowest)))
        return found

    def rounds(self, rows: list[Array], units: list[int]) -> list[float]:
        """The seconds of each round."""
        whole = zip(rows, units, strict=True)
        return [float((self.away + unit * self.computing)[self.waited(who)].max()) for who, unit in whole]


def hits(found: Curve | None, known: Facts) -> dict[str, list[float]]:
    """The cost of each goal by score: in the first round with f at most the goal; inf for a miss."""
    cap = rules().goal.cap
    costs: dict[str, list[float]] = {score: [] for score in SCORES}
    for level, goal in enumerate(known.goals):
        met = np.zeros(1, bool) if found is None else found.f <= goal
        first = int(np.argmax(met)) if met.any() else None
        for score in SCORES:
            cost = math.inf if found is None or first is None else float(found.costs[score][first])
            costs[score].append(cost if cost <= cap * known.reference[score][level] else math.inf)
    return costs
