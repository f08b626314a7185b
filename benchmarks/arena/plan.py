"""What the arena compares: workloads.toml and rules.toml read, and the settings that are tried."""

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from scipy.stats import qmc

from mpifed import UserError
from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.core.toml import flatten
from mpifed.experiment import config as configuration
from mpifed.federation.traits import required_methods
from mpifed.sweeps.search import assign, parse_range


class Workload(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A problem on divided data with a selection; ``batch``: samples of a mini-batch, 0: all.

    ``rounds``: of the longest run, 0: those of rules.toml.
    """

    name: str
    about: str
    group: str
    study: dict[str, Any]
    batch: int = 0
    rounds: int = 0
    part: str = ""  # TUNING or HELD, as drawn


class Plan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How much is run, see rules.toml; which ``workloads``, none: all."""

    tries: int
    keep: int
    tuning_seeds: int
    held_out_seeds: int
    workloads: list[str] = []


class Draw(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    number: int


class Goal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How goals are set: ``gaps`` of f, of networks ``apart`` of the validation loss and the share of errors."""

    gaps: list[float]
    apart: list[float]
    high: float
    gradient: float
    rounds: int
    seed: int
    steps: int
    rate: float


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
    value: float


class Rules(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """rules.toml."""

    draw: Draw
    plan: dict[str, Plan]
    goal: Goal
    seeds: Seeds
    system: Ticks
    curvature: Curvature
    method: list[dict[str, Any]]


class Facts(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of a workload before a method runs, and its goals, from goals.toml.

    ``m`` clients, ``n`` parameters, ``samples`` of a mean client, the unit ``r``, ``skew`` = mean ‖∇f_i − ∇f‖²/‖∇f‖² at
    the first model, the ``share`` of clients in a round, whether the problem has Hessians (``curved``), the ``numbers``
    of all samples. ``goals``: levels of ``columns`` to reach, easiest first, and the ``gaps`` that they leave;
    ``start`` and ``optimum``: f that they lie between; ``gradient``: the norm of ∇f at f*, over that at the start, of a
    network 0; ``pooled``: the passes in which L-BFGS on all samples at once reaches them, -1: never.
    """

    m: int
    n: int
    samples: float
    r: float
    skew: float
    share: float
    curved: bool
    numbers: int = 0
    start: float = np.nan
    optimum: float = np.nan
    gradient: float = 0.0
    columns: list[str] = []
    gaps: list[float] = []
    goals: list[float] = []
    pooled: list[float] = []

    @property
    def accuracies(self) -> list[str]:
        """LOW or HIGH for each goal."""
        return [HIGH if gap <= rules().goal.high else LOW for gap in self.gaps]


HERE = Path(__file__).parent
TUNING, HELD = "tuning", "held-out"
LOW, HIGH = "low", "high"  # accuracies
UNIT = re.compile(r"(\S+) ([*/]) r")
OWN = ("label", "curvature", "random", "before", "compress")  # keys of a [[method]] that are no options
SCORES = ("bits", "passes", "equal", "lognormal", "pareto")
KINDS = {"bits": ["bits"], "seconds": ["passes", "equal", "lognormal", "pareto"]}  # what a user counts -> its scores
DRAWN = ("lognormal", "pareto")  # scores for which devices are drawn
ENTERED = "MPIFED_ARENA_METHOD"  # variable with the [[method]] of a user's own class, as JSON
SCALE = 20261129  # seed of the quasi-random numbers
DIGITS = 4  # significant digits of settings
CALM = {"stop": {"diverged": 1e4}, "checkpoint": {"keep": False}}


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
    """workloads.toml, by name, with the parts that rules.toml draws."""
    found = tomllib.loads(file("workloads.toml").read_text("utf-8"))["workload"]
    held = held_out([(one["name"], one["group"]) for one in found], rules().draw.number)
    return {
        one["name"]: msgspec.convert(one | {"part": HELD if one["name"] in held else TUNING}, Workload) for one in found
    }


def held_out(of: list[tuple[str, str]], number: int) -> set[str]:
    """Half of the names of every group: those that a permutation puts last, group after group as they come."""
    rng = np.random.default_rng(number)
    groups: dict[str, list[str]] = {}
    for name, group in of:
        groups.setdefault(group, []).append(name)
    return {names[k] for names in groups.values() for k in rng.permutation(len(names))[len(names) - len(names) // 2 :]}


@cache
def rules() -> Rules:
    """rules.toml."""
    return msgspec.convert(tomllib.loads(file("rules.toml").read_text("utf-8")), Rules)


@cache
def facts() -> dict[str, Facts]:
    """goals.toml, by workload. UserError where it is not there."""
    path = file("goals.toml")
    if not path.exists():
        raise UserError("goals.toml is missing: python -m benchmarks.arena goals writes it")
    return msgspec.convert(tomllib.loads(path.read_text("utf-8"))["workload"], dict[str, Facts])


def labels() -> list[str]:
    """The methods of rules.toml."""
    return [one["label"] for one in rules().method]


def entered() -> dict[str, Any] | None:
    """The [[method]] of a user's own class, where one was entered."""
    found: dict[str, Any] | None = json.loads(os.environ.get(ENTERED, "null"))
    return found


def table(label: str) -> dict[str, Any]:
    """The [[method]] of a label. UserError for an unknown one."""
    own = entered()
    for one in [*rules().method, *([own] if own else [])]:
        if one["label"] == label:
            return one
    raise UserError(f"there is no method {label!r}: there are {', '.join(labels())}")


@cache
def shares(label: str, count: int) -> list[list[float]]:
    """Points of the unit cube, one coordinate for each range of a method; a longer list begins with a shorter one."""
    halton = qmc.Halton(len(ranges(label)), scramble=True, rng=SCALE)
    found: list[list[float]] = halton.random(count).tolist()
    return found


def ranges(label: str) -> list[str]:
    """The options of a method that are tuned."""
    return [key for key, value in flatten(table(label)).items() if ranged(value)]


def numbers(label: str, count: int) -> range:
    """Tries 0 to ``count`` − 1 of a method; one alone where it has nothing to be tuned."""
    return range(count if ranges(label) else 1)


def ranged(value: Any) -> bool:
    """Whether a value of rules.toml is a range."""
    return isinstance(value, str) and parse_range(UNIT.sub(r"\1", value), value) is not None


def setting(label: str, number: int, r: float) -> Setting:
    """Try ``number``, from 0, of a method where the unit is ``r``."""
    coordinates = iter(shares(label, number + 1)[number] if ranges(label) else [])
    algorithm: dict[str, Any] = {}
    for key, value in flatten({key: value for key, value in table(label).items() if key not in OWN}).items():
        assign(algorithm, key, at(value, next(coordinates), r) if ranged(value) else value)
    return Setting(label, number, algorithm)


def at(text: str, share: float, r: float) -> float | int:
    """The number at a share of the way through a range such as "0.3..10 / r"."""
    scaled = UNIT.fullmatch(text)
    found = parse_range(scaled[1] if scaled else text, text)
    assert found is not None, text
    value = found._replace(whole=False).at(share)
    if scaled:
        value = value * r if scaled[2] == "*" else value / r
    elif found.whole:
        return round(value)
    return float(f"{value:.{DIGITS}g}")


@cache
def available(name: str, label: str) -> bool:
    """Whether a method can run: the problem has what it needs, matrices are affordable, whom it needs replies."""
    workload, own = workloads()[name], table(label)
    known = facts()[name]
    if own.get("curvature") and known.n > rules().curvature.most:
        return False
    config = configuration.experiment(study(workload, setting(label, 0, known.r), 0))
    able = all(config.problem.has(need) for need in required_methods(config.algorithm))
    return able and not (config.algorithm.participation.everyone and "dropout" in workload.study.get("system", {}))


def random(name: str, label: str) -> bool:
    """Whether runs with other seeds differ on equal devices; of a user's class they may."""
    workload, own = workloads()[name], table(label)
    config = configuration.experiment(study(workload, setting(label, 0, facts()[name].r), 0))
    batches = bool(workload.batch) and "batch_size" in config.algorithm.__struct_fields__
    selected = config.algorithm.participation.selections and workload.study["selection"] != "all"
    drawn = batches or selected or workload.group in ("absent", "network")
    return drawn or bool(own.get("random")) or ":" in own["name"]


def study(workload: Workload, one: Setting, seed: int) -> dict[str, Any]:
    """The experiment of a try."""
    algorithm = dict(one.algorithm)
    if workload.batch and "batch_size" in Algorithm.member(algorithm["name"], "algorithm").__struct_fields__:
        algorithm["batch_size"] = workload.batch
    rounds = workload.rounds or rules().goal.rounds
    compress = table(one.method).get("compress")
    more = {"compress": {"up": compress, "down": compress}} if compress else {}
    return CALM | workload.study | more | {"algorithm": algorithm, "seed": seed, "rounds": rounds}


def key(workload: Workload, label: str) -> str:
    """A hash of all that rows of a workload and method depend on: they are run again where it has changed."""
    path = Path(table(label)["name"].partition(":")[0])
    parts = [
        msgspec.to_builtins(msgspec.structs.replace(workload, part="")),
        table(label),
        path.read_text("utf-8") if path.is_file() else "",
        msgspec.to_builtins(facts()[workload.name]),
        msgspec.to_builtins(rules().goal),
        msgspec.to_builtins(rules().curvature),
        msgspec.to_builtins(rules().system),
    ]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]


FIXED = ("workloads.toml", "rules.toml", "goals.toml", "settings.toml", "decisions.toml")
HEAD = (
    "# Written by python -m benchmarks.arena lock: SHA-256 of the files that were fixed before the held-out runs.\n\n"
)


def hashes() -> dict[str, str]:
    """The hashes of the files as they are; UserError for one that is not there."""
    for name in FIXED:
        if not file(name).exists():
            raise UserError(f"{name} is missing, and must be written before held-out workloads are opened")
    return {name: hashlib.sha256(file(name).read_bytes()).hexdigest() for name in FIXED}


def lock() -> Path:
    """Write lock.toml. UserError where there is one of other files: held-out runs belong to that."""
    path = file("lock.toml")
    found = hashes()
    if path.exists() and tomllib.loads(path.read_text("utf-8")) != found:
        raise UserError(
            "lock.toml is of other files: held-out workloads can be opened once; to begin another study, delete "
            "lock.toml and choose other held-out workloads"
        )
    path.write_text(HEAD + "".join(f'"{name}" = "{value}"\n' for name, value in found.items()), "utf-8")
    return path


def refuse_unlocked(names: Iterable[str]) -> None:
    """UserError where one of these workloads is held out and lock.toml has not the hashes of the files as they are."""
    held = sorted({name for name in names if workloads()[name].part == "held-out"})
    if not held:
        return
    path = file("lock.toml")
    if not path.exists():
        raise UserError(f"{held[0]} is held out, and lock.toml is missing: python -m benchmarks.arena lock writes it")
    known, found = tomllib.loads(path.read_text("utf-8")), hashes()
    for name in FIXED:
        if known.get(name) != found[name]:
            raise UserError(f"{held[0]} is held out, and {name} is not the file whose hash is in lock.toml: restore it")
