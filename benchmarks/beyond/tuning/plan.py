"""How all methods are tuned at an equal budget: plan.toml read, in the units of a data set."""

import re
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np

from mpifed import UserError
from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.algorithms.feddcd import FedDCD
from mpifed.core.toml import flatten
from mpifed.experiment import config as configuration
from mpifed.experiment.optimum import build_local_federation
from mpifed.features.certificate.minimum import find_minimum
from mpifed.sweeps.measure import parse_measure
from mpifed.sweeps.search import SearchAxis, TunedMethod, assign, make_method, parse_range
from mpifed.sweeps.tune import TuningPlan

FILE = Path(__file__).with_name("plan.toml")
SCALED = re.compile(r"(\S+) ([*/]) (L|LD|LX|kappa|n|X|nXX)")
TICK = 0.2  # simulated seconds of a model one way, and of a pass over the samples of a mean client
ROUNDS = 1000  # more than any method has in its simulated seconds
OWN = ("label", "passes", "data")  # keys of a [[method]] that are no options
SIGMA = 1.0  # of the logarithm of speeds and bandwidths, where clients differ
DIGITS = 3  # significant digits of scaled numbers


class Table(msgspec.Struct, forbid_unknown_fields=True):
    """A data set: the gap to reach, the simulated seconds of a try, the study, and the unit L as a share of max r_i."""

    gap: float
    seconds: float
    study: dict[str, Any]
    L: float = 1.0


class Tuning(msgspec.Struct, forbid_unknown_fields=True):
    """plan.toml."""

    settings: int
    seed: int
    rounds: int
    data: dict[str, Table]
    method: list[dict[str, Any]]


class Units(NamedTuple):
    """What numbers are multiples of, and the least f."""

    L: float
    kappa: float
    n: int
    D: int
    mean: float  # samples of a client
    X: float
    optimum: float

    def scaled(self, value: Any) -> Any:
        """A value of plan.toml with its unit multiplied out: "0.3..10 / L" -> "0.05..1.67"."""
        found = SCALED.fullmatch(value) if isinstance(value, str) else None
        if found is None:
            return value
        products = {"LD": self.L * self.D, "LX": self.L * self.X, "nXX": self.n * self.X**2}
        unit = (self._asdict() | products)[found[3]]
        numbers = [float(part) * unit if found[2] == "*" else float(part) / unit for part in found[1].split("..")]
        if found[3] == "n":
            numbers = [max(1, round(number)) for number in numbers]
        texts = [f"{number:.{DIGITS}g}" if isinstance(number, float) else str(number) for number in numbers]
        return "..".join(texts) if len(texts) > 1 else type(numbers[0])(texts[0])


def read() -> Tuning:
    """plan.toml, with the methods that mpifed has."""
    found = msgspec.convert(tomllib.loads(FILE.read_text("utf-8")), Tuning)
    return msgspec.structs.replace(found, method=[one for one in found.method if one["name"] in Algorithm.choices])


def units(table: Table, seed: int) -> Units:
    """The units of a data set; all f_i must be strongly convex."""
    config, dual = configuration.experiment(table.study | {"seed": seed, "algorithm": "feddcd"}), FedDCD()
    fed, data = build_local_federation(config)
    L, alpha = map(float, fed.max(dual.bounds))
    least, sizes = find_minimum(fed, dual, fed.initial()), data.sizes
    X = float(np.sqrt(np.mean(least.x**2)))
    return Units(L * table.L, -alpha / L, fed.n, int(sizes.max()), float(sizes.mean()), X, least.f)


def devices(unit: Units) -> dict[str, Any]:
    """[system] of equal clients."""
    speed, bandwidth = unit.mean / TICK, 8 * unit.n / TICK
    return {"speed": speed, "bandwidth_down": bandwidth, "bandwidth_up": bandwidth, "latency": TICK / 2}


def settings(table: dict[str, Any], runs: int, number: int, unit: Units) -> TunedMethod:
    """The settings of one [[method]] to try."""
    fixed: dict[str, Any] = {}
    axes: dict[str, SearchAxis] = {}
    for key, value in flatten({key: value for key, value in table.items() if key not in OWN}).items():
        if isinstance(value, list):
            axes[key] = [unit.scaled(one) for one in value]
            continue
        scaled = unit.scaled(value)
        axis = parse_range(scaled, key) if isinstance(scaled, str) else None
        if axis:
            axes[key] = axis
        else:
            assign(fixed, key, scaled)
    return make_method(table["label"], fixed, axes, runs, number)


def passes(table: dict[str, Any], unit: Units) -> dict[str, float]:
    """system.passes of a method that cannot tell its own."""
    if "passes" not in table:
        return {}
    return {"passes": 1 + unit.n / 4 if table["passes"] == "hessian" else table["passes"]}


def study(tuning: Tuning, name: str, unit: Units) -> dict[str, Any]:
    """The study of a data set, which ends at a tenth of the gap or when its simulated seconds are spent."""
    data = tuning.data[name]
    stop = {"optimum": unit.optimum, "objective_gap": data.gap / 10, "simulated_seconds": data.seconds}
    own = {"rounds": ROUNDS, "stop": stop, "system": devices(unit), "selection": {"name": "uniform", "share": 0.5}}
    return data.study | own


def comparison(tuning: Tuning, name: str, plan: TuningPlan) -> dict[str, Any]:
    """The study in which tuned methods are compared: the same without a limit of time, on clients that differ."""
    system = {key: spread(value) for key, value in plan.study["system"].items() if key != "passes"}
    stop = {key: value for key, value in plan.study["stop"].items() if key == "objective_gap"} | {"optimum": 0.0}
    return plan.study | {"rounds": tuning.rounds, "stop": stop, "system": system}


def spread(value: float) -> Any:
    """A property whose median all clients had in tuning; latencies stay."""
    return value if value == TICK / 2 else {"name": "lognormal", "median": value, "sigma": SIGMA}


def plans(tuning: Tuning, name: str, labels: list[str]) -> list[TuningPlan]:
    """A plan for each method called one of ``labels`` (none: all): passes over samples differ from one to the next.

    UserError for a label that no method on this data set has.
    """
    there = [table["label"] for table in tuning.method if name in table.get("data", tuning.data)]
    if unknown := [label for label in labels if label not in there]:
        raise UserError(f"no method on {name} is called {unknown[0]!r}: there are {'; '.join(there)}")
    unit = units(tuning.data[name], tuning.seed)
    common, found = study(tuning, name, unit), []
    for number, table in enumerate(tuning.method):
        if table["label"] not in (labels or there):
            continue
        own = common | {"system": common["system"] | passes(table, unit)}
        config = configuration.experiment(own | {"algorithm": table["name"]})
        measure = parse_measure(
            f"simulated_seconds to objective_gap <= {tuning.data[name].gap:g} for good", config.stop
        )
        tries = settings(table, tuning.settings, number, unit)
        found.append(TuningPlan(own, [tries], [tuning.seed], measure))
    return found
