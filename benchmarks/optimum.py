"""The minimum f* of a convex problem, which objective_gap needs."""

import hashlib
import os
from pathlib import Path

import msgspec

from mpifed.algorithms.fedavg import FedAvg
from mpifed.data.cache import Cache
from mpifed.experiment.config import Experiment
from mpifed.experiment.optimum import build_local_federation
from mpifed.features.certificate import minimum as lowest
from mpifed.federation.participation.selection import All


class Optima:
    """f* = min (1/m) Σ f_i of experiments by data, problem and seed, computed by L-BFGS and cached in optima.json."""

    def __init__(self, folder: Path) -> None:
        self.file, self.cache = folder / "optima.json", Cache()
        try:
            self.known = msgspec.json.decode(self.file.read_bytes(), type=dict[str, float])
        except (OSError, msgspec.DecodeError):
            self.known = {}

    def given(self, config: Experiment) -> Experiment:
        """The experiment with stop.optimum set to f*."""
        key = name(config)
        if key not in self.known:
            self.known[key] = minimum(config, self.cache)
            self.save()
        return msgspec.structs.replace(config, stop=msgspec.structs.replace(config.stop, optimum=self.known[key]))

    def save(self) -> None:
        """Replace optima.json in one step, because other tasks of an array job write it too."""
        self.file.parent.mkdir(parents=True, exist_ok=True)
        part = self.file.with_name(f"optima.{os.uname().nodename}.{os.getpid()}")
        part.write_bytes(msgspec.json.format(msgspec.json.encode(self.known)))
        os.replace(part, self.file)


def name(config: Experiment) -> str:
    """A hash of all that f* depends on: data, problem, seed and dtype."""
    parts = (config.data, config.problem, config.seed, config.dtype)
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:20]


def minimum(config: Experiment, cache: Cache) -> float:
    """f* of an experiment, from its initial model in double precision."""
    algorithm = FedAvg()  # any algorithm; this one prepares nothing
    fed, _ = build_local_federation(
        msgspec.structs.replace(config, algorithm=algorithm, selection=All(), start=None, graph=None), cache
    )
    return lowest.find_minimum(fed, algorithm, fed.initial()).f
