"""A rough estimate of what a run costs, from its configuration alone, to put many runs in order."""

import os
from typing import Any

import numpy as np

from mpifed.data.base import Data
from mpifed.experiment.config import Experiment
from mpifed.federation.method import DrawnWork

SPEED = 1e9  # multiplications a second
ROUND = 5e-4  # seconds that a round takes with nothing to compute
POINT = 0.1  # seconds that a run takes without rounds
UNKNOWN = 10**6  # numbers in the samples of a data set of unknown size

OWN = ("samples", "least", "most", "features", "channels", "size", "path")  # keys that tell the size of a data set


def cost(config: Experiment) -> float:
    """Seconds that a run takes at most on one core, roughly: rounds × (gradients + evaluations) × samples × features.

    A gradient takes two multiplications for every number in the samples; ``Algorithm.work`` times ``units`` gives the
    gradients that a selected client computes in a round, 1 if they are not known in advance. Stop rules, classes and
    layers are ignored, so only ratios of costs are meaningful.
    """
    algorithm = config.algorithm
    selection = config.selection
    work = algorithm.work(np.array([1000.0]))
    units = algorithm.units() if isinstance(algorithm, DrawnWork) else 1.0
    gradients = units * (1.0 if work is None else float(np.ravel(work)[0]) / 1000)
    count = getattr(selection, "count", None)
    share = getattr(selection, "share", 1.0) if count is None else min(1.0, count / (config.data.clients or 128))
    participation = 1.0 if algorithm.takes.everyone else share
    passes = config.rounds * (gradients * participation + 1 / config.evaluate.every)
    return POINT + ROUND * config.rounds + (2 * passes + 10) * numbers(config.data) / SPEED


def numbers(data: Data) -> float:
    """Samples × features of all clients, as far as the table [data] tells."""
    own: dict[str, Any] = {key: getattr(data, key, None) for key in OWN}
    if own["path"] is not None:
        path = os.path.expanduser(own["path"])
        return os.path.getsize(path) / 8 if os.path.isfile(path) else UNKNOWN
    n = own["features"] or (own["channels"] * own["size"] ** 2 if own["channels"] else None)
    if n is None:
        return UNKNOWN
    d = own["samples"] or ((own["least"] + own["most"]) / 2 if own["most"] else n)
    return float(data.clients * d * n)
