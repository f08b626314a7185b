"""The least time of a run on a tridiagonal quadratic, whose constants are known."""

import math

import numpy as np

from mpifed import Result
from mpifed.experiment import config as configuration
from mpifed.report.least_time import seconds_to
from mpifed.theory.least_time import LeastTimeInputs, lower_bound

EPS = 1e-3


def over_least(result: Result) -> float:
    """Simulated seconds to ‖∇f‖² <= EPS over the bound of the least time with c = 1; nan on other data."""
    data = result.config["data"]
    if data["name"] != "tridiagonal" or "asynchronous" not in result.config:
        return math.nan
    config = configuration.experiment(result.config)
    assert config.system is not None
    n, m = data["features"], data["clients"]
    L, delta = (1 + math.cos(math.pi / (n + 1))) / 2, n / (8 * (n + 1))
    tau = n / config.system.draw_property(config.seed, "speed", m)
    variance = n * result.config["problem"].get("noise", 0.0) ** 2
    setting = LeastTimeInputs(np.asarray(tau), L, delta, variance, not data.get("spread"), {})
    return seconds_to(result, EPS) / lower_bound(setting, EPS)


MEASURES = {"over_least": over_least}
