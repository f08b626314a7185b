"""The minimum f* of a convex problem, which objective_gap needs."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from scipy.optimize import minimize

from mpifed.algorithms.fedavg import FedAvg
from mpifed.data.cache import Cache
from mpifed.experiment.config import Experiment
from mpifed.experiment.prepare import start
from mpifed.federation.host import Host
from mpifed.federation.server import Federation
from mpifed.federation.setup import Setup
from mpifed.federation.transport import InProcess

GRADIENT = 1e-9  # largest entry of the gradient at the optimum


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
    """Minimise f by L-BFGS from the run's initial model, if possible until no entry of ∇f exceeds GRADIENT."""
    config = msgspec.structs.replace(config, algorithm=FedAvg())  # any algorithm; this one prepares nothing
    data = cache.load(config.data, config.seed, "float64")
    first = start(config, data, 1).astype(float)
    setup = Setup(config.problem, config.algorithm, config.seed, data.m, first)
    host = Host(setup, data, 0, data.m)
    host.join()
    selector = config.selection.selector(config.seed, data.m, config.rounds)
    fed = Federation(InProcess(host), setup, selector, data.sizes)

    def f(x: np.ndarray) -> tuple[float, Any]:
        sums = fed.evaluate(x)
        return float(sums["objective"]) / data.m, sums["gradient"] / data.m

    found = minimize(
        f,
        first,
        jac=True,
        method="L-BFGS-B",
        options={"maxiter": 20000, "maxfun": 40000, "ftol": 0.0, "gtol": GRADIENT, "maxcor": 30},
    )
    return float(found.fun)
