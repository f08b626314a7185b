"""What the arena compares: workloads.toml and rules.toml read, and the settings that are tried."""

import hashlib
import json
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from scipy.stats import qmc

from mpifed import UserError
from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.core.toml import flat
from mpifed.experiment import config as configuration
from mpifed.federation.traits import needs
from mpifed.sweeps.search import as_range, assign

HERE = Path(__file__).parent
UNIT = re.compile(r"(\S+) ([*/]) r")
OWN = ("label", "curvature")  # keys of a [[method]] that are no options
SCORES = ("bits", "passes", "equal", "lognormal", "pareto")
SCALE = 20261123  # seed of the quasi-random numbers
DIGITS = 4  # significant digits of settings
CALM = {"stop": {"diverged": 1e4}, "checkpoint": {"keep": False}}


class Workload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A problem on divided data with a selection; ``batch``: samples of a mini-batch, 0: all."""

    name: str
    about: str
    part: str
    study: dict[str, Any]
    batch: int = 0


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much is run.

    ``after``: the numbers of tries that scores are given after; so many ``methods``, and which workloads, none: all.
    """

    tries: int
    after: list[int]
    seeds: int
    methods: int
    workloads: list[str] = []


class Goal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How goals are set."""

    references: list[str]
    tries: int
    seed: int
    rounds: int
    gaps: list[float]
    cap: float

    @property
    def most(self) -> int:
        """Rounds of the longest run."""
        return round(self.cap * 2 * self.rounds)


class Seeds(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    tuning: int
    final: int


class Ticks(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What devices are made of."""

    tick: float
    lognormal: float
    pareto: float


class Curvature(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    most: int
    passes: float


class Rules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """rules.toml."""

    plan: dict[str, Plan]
    goal: Goal
    seeds: Seeds
    system: Ticks
    curvature: Curvature
    method: list[dict[str, Any]]


class Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of a workload before a method runs, and its goals, from goals.toml.

    ``m`` clients, ``n`` parameters, ``samples`` of a mean client, the unit ``r``, ``skew`` = mean ‖∇f_i − ∇f‖²/‖∇f‖² at
    the first model, the ``share`` of clients in a round, whether the problem has Hessians (``curved``). ``goals``: f to
    reach, easiest first; ``reference``: the least cost of a reference to each of them, by score.
    """

    m: int
    n: int
    samples: float
    r: float
    skew: float
    share: float
    curved: bool
    goals: list[float] = []
    reference: dict[str, list[float]] = {}


class Setting(NamedTuple):
    """A try of a method: the table [algorithm], without what a workload adds."""

    method: str
    number: int
    algorithm: dict[str, Any]


def file(name: str) -> Path:
    """A file beside this one."""
    return HERE / name


@cache
def workloads() -> dict[str, Workload]:
    """workloads.toml, by name."""
    found = tomllib.loads(file("workloads.toml").read_text("utf-8"))
    return {one["name"]: msgspec.convert(one, Workload) for one in found["workload"]}


@cache
def rules() -> Rules:
    """rules.toml."""
    return msgspec.convert(tomllib.loads(file("rules.toml").read_text("utf-8")), Rules)


@cache
def later() -> dict[str, int]:
    """later.toml: plan -> its final seeds, where some were added after its page had been written."""
    path = file("later.toml")
    return tomllib.loads(path.read_text("utf-8")) if path.exists() else {}


@cache
def facts() -> dict[str, Facts]:
    """goals.toml, by workload. UserError where it is not there."""
    path = file("goals.toml")
    if not path.exists():
        raise UserError("goals.toml is missing: python -m benchmarks.arena goals writes it")
    return msgspec.convert(tomllib.loads(path.read_text("utf-8"))["workload"], dict[str, Facts])


def labels(plan: Plan | None = None) -> list[str]:
    """The methods of a plan, or all, in the order in which they are kept."""
    return [one["label"] for one in rules().method][: plan.methods if plan else None]


def table(label: str) -> dict[str, Any]:
    """The [[method]] of a label. UserError for an unknown one."""
    for one in rules().method:
        if one["label"] == label:
            return one
    raise UserError(f"there is no method {label!r}: there are {', '.join(labels())}")


@cache
def shares(label: str, count: int) -> list[list[float]]:
    """Points of the unit cube, one coordinate for each range of a method; a longer list begins with a shorter one."""
    ranges = [key for key, value in flat(table(label)).items() if ranged(value)]
    halton = qmc.Halton(len(ranges), scramble=True, rng=SCALE)
    found: list[list[float]] = halton.random(count).tolist()
    return found


def ranged(value: Any) -> bool:
    """Whether a value of rules.toml is a range."""
    return isinstance(value, str) and ".." in value


def setting(label: str, number: int, r: float) -> Setting:
    """Try ``number``, from 0, of a method where the unit is ``r``."""
    coordinates = iter(shares(label, number + 1)[number])
    algorithm: dict[str, Any] = {}
    for key, value in flat({key: value for key, value in table(label).items() if key not in OWN}).items():
        assign(algorithm, key, at(value, next(coordinates), r) if ranged(value) else value)
    return Setting(label, number, algorithm)


def at(text: str, share: float, r: float) -> float | int:
    """The number at a share of the way through a range such as "0.3..10 / r"."""
    scaled = UNIT.fullmatch(text)
    found = as_range(scaled[1] if scaled else text, text)
    assert found is not None, text
    value = found._replace(whole=False).at(share)
    if scaled:
        value = value * r if scaled[2] == "*" else value / r
    elif found.whole:
        return round(value)
    return float(f"{value:.{DIGITS}g}")


def available(workload: Workload, label: str) -> bool:
    """Whether a method can run on a workload: the problem has what it needs, and matrices are affordable."""
    own = table(label)
    known = facts()[workload.name]
    if own.get("curvature") and known.n > rules().curvature.most:
        return False
    config = configuration.experiment(study(workload, setting(label, 0, known.r), 0))
    return all(config.problem.has(name) for name in needs(config.algorithm))


def study(workload: Workload, one: Setting, seed: int) -> dict[str, Any]:
    """The experiment of a try, on equal devices where goals.toml knows the workload's sizes."""
    algorithm = dict(one.algorithm)
    if workload.batch and "batch_size" in Algorithm.member(algorithm["name"], "algorithm").__struct_fields__:
        algorithm["batch_size"] = workload.batch
    return CALM | workload.study | {"algorithm": algorithm, "seed": seed, "rounds": rules().goal.most}


def key(workload: Workload, label: str) -> str:
    """A hash of all that rows of a workload and method depend on: they are run again where it has changed."""
    parts = [
        msgspec.to_builtins(workload),
        table(label),
        msgspec.to_builtins(facts()[workload.name]),
        msgspec.to_builtins(rules().goal),
        msgspec.to_builtins(rules().system),
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]
