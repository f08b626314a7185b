"""The tables of workloads.toml, rules.toml and goals.toml."""

from typing import Any

import msgspec
import numpy as np


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
    seeds: int
    held_out_seeds: int
    own: list[str]
    own_tries: int
    own_tuning_seeds: int
    own_seeds: int
    workloads: list[str] = []


class Draw(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    number: int


class Goal(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How goals are set."""

    gaps: list[float]
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
    the first model, the ``share`` of clients in a round, whether the problem has Hessians (``curved``). ``goals``: f to
    reach, easiest first, and the ``gaps`` that they leave; ``start`` and ``optimum``: f that they lie between.
    """

    m: int
    n: int
    samples: float
    r: float
    skew: float
    share: float
    curved: bool
    start: float = np.nan
    optimum: float = np.nan
    gaps: list[float] = []
    goals: list[float] = []
