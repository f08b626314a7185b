"""A rough estimate of what a run costs, from its configuration alone, to put many runs in order."""

import os
from typing import Any, NamedTuple

import numpy as np

from mpifed.data.dataset import Data, Dataset
from mpifed.data.labels import classes_of
from mpifed.experiment.config import Experiment
from mpifed.federation.traits import needs

SPEED = 1e9  # multiplications a second
MATRIX_SPEED = 1e10  # in products of matrices
ROUND = 5e-4  # seconds that a round takes with nothing to compute
POINT = 0.1  # seconds that a run takes without rounds
UNKNOWN = 10**6  # numbers in the samples of a data set of unknown size
CLASSES = 10  # of a data set that does not tell
SOLVER = 10.0  # gradients that a local solver takes whose steps are not known in advance
OFF = 5  # runs took from a fifth of the estimate to five times as long
BASIS = f"rounds × gradients × numbers in the samples: it may be {OFF} times less or more, and stop rules are not in it"
PROCESS = 4e8  # bytes of a process with libraries and compiled kernels
COPIES = 3  # of the samples: as they are made, in blocks, and what is computed from a block
STATES = 12  # vectors of a client: its state, what it uploads, and what it computes with

OWN = ("samples", "least", "most", "features", "channels", "size", "path")  # keys that tell the size of a data set


def cost(config: Experiment) -> float:
    """Seconds that a run takes on one core, roughly: rounds × (gradients + evaluations) × samples × features × scores.

    A gradient takes two multiplications for every number in the samples and every score that is computed from it, such
    as that of a class; ``Algorithm.work`` times ``units`` gives the gradients that a selected client computes in a
    round, SOLVER if they are not known in advance. Second derivatives take n/2 multiplications for each number. Stop
    rules may end a run earlier.
    """
    algorithm = config.algorithm
    selection = config.selection
    # asked for a thousand samples: the answer need not be linear in d, and mini-batches of fewer are whole then
    work = algorithm.work(np.array([1000.0]))
    gradients = algorithm.units() * (SOLVER if work is None else float(np.ravel(work)[0]) / 1000)
    count = getattr(selection, "count", None)
    share = getattr(selection, "share", 1.0) if count is None else min(1.0, count / (config.data.clients or 128))
    participation = 1.0 if algorithm.takes.everyone else share
    passes = config.rounds * (gradients * participation + 1 / config.evaluate.every)
    shape = shape_of(config.data)
    n = parameters(config, shape.n)
    scores = max(1.0, n / shape.n)
    vectors = (2 * passes + 10) * shape.numbers
    matrices = 2 * passes * (scores - 1) * shape.numbers
    if "hess" in needs(algorithm):
        matrices += config.rounds * participation * shape.numbers * n / 2
    return POINT + ROUND * config.rounds + vectors / SPEED + matrices / MATRIX_SPEED


def memory(config: Experiment) -> tuple[float, float] | None:
    """Bytes of any process of a run, and bytes that its hosts share; None where the size of the data is not known."""
    shape = shape_of(config.data)
    if not shape.known:
        return None
    n = parameters(config, shape.n)
    held = COPIES * shape.numbers + config.data.clients * n * (n if "hess" in needs(config.algorithm) else STATES)
    return PROCESS, held * np.dtype(config.dtype).itemsize


class Shape(NamedTuple):
    """The size of a data set, as far as the table [data] tells: all ``numbers`` in its samples, and n features."""

    numbers: float
    n: int
    known: bool = True


def shape_of(data: Data) -> Shape:
    """Samples × features of all clients, and the features; a guess where the table [data] does not tell."""
    own: dict[str, Any] = {key: getattr(data, key, None) for key in OWN}
    if own["path"] is not None:
        path = os.path.expanduser(own["path"])
        return Shape(os.path.getsize(path) / 8 if os.path.isfile(path) else UNKNOWN, 100, False)
    n = own["features"] or (own["channels"] * own["size"] ** 2 if own["channels"] else None)
    if n is None:
        return Shape(UNKNOWN, 100, False)
    d = own["samples"] or ((own["least"] + own["most"]) / 2 if own["most"] else n)
    return Shape(float(data.clients * d * n), n)


def parameters(config: Experiment, n: int) -> int:
    """The parameters of a model of n features; n where the problem needs the data themselves to tell."""
    data = Dataset()
    data.n = n
    data.classes = len(classes_of(getattr(config.data, "classes", None) or CLASSES))
    data.sizes = np.full(1, n)
    try:
        return config.problem.dim(data)
    except Exception:  # a class of a user's own may look at anything
        return n
