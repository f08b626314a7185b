"""A rough estimate of the cost of a run, from its configuration alone, to sort many runs."""

import os
from typing import Any, NamedTuple

import numpy as np

from mpifed.data.dataset import Data, Dataset
from mpifed.data.labels import list_classes
from mpifed.experiment.config import Experiment
from mpifed.federation.traits import required_methods

SPEED = 1e9  # multiplications per second
MATRIX_SPEED = 1e10  # in products of matrices
ROUND = 5e-4  # seconds of a round with nothing to compute
POINT = 0.1  # seconds of a run without rounds
UNKNOWN = 10**6  # numbers in the samples of a data set of unknown size
CLASSES = 10  # of a data set whose classes are not known
SOLVER = 10.0  # gradients of a local solver whose number of steps is not known in advance
OFF = 5  # factor of error: runs took between a fifth of the estimate and five times the estimate
BASIS = f"rounds × gradients × numbers in the samples: it may be {OFF} times less or more, and stop rules are not in it"
PROCESS = 4e8  # bytes of a process with libraries and compiled kernels
COPIES = 3  # of the samples: as made, in blocks, and as computed from a block
STATES = 12  # vectors of a client: its state, its upload, and those of its computation

SIZE_KEYS = ("samples", "least", "most", "features", "channels", "size", "path")  # they give the size of a data set


def cost(config: Experiment) -> float:
    """Return the estimated seconds of a run on one core.

    Roughly these are rounds × (gradients + evaluations) × samples × features × scores. A gradient takes two
    multiplications for every number in the samples and every score computed from it, such as that of a class;
    ``Algorithm.work`` times
    ``repeats`` gives the gradients that a selected client computes in a round, SOLVER if they are not known in advance.
    Second derivatives take n/2 multiplications a number. Stop rules may end a run earlier.
    """
    algorithm = config.algorithm
    selection = config.selection
    # asked for 1000 samples, as work need not be linear in d and mini-batches must not exceed the samples
    work = algorithm.sample_gradients(np.array([1000.0]))
    gradients = algorithm.repeats() * (SOLVER if work is None else float(np.ravel(work)[0]) / 1000)
    count = getattr(selection, "count", None)
    fraction = getattr(selection, "share", 1.0) if count is None else min(1.0, count / (config.data.clients or 128))
    participation = 1.0 if algorithm.participation.everyone else fraction
    passes = config.rounds * (gradients * participation + 1 / config.evaluate.every)
    size = data_size(config.data)
    n = count_parameters(config, size.n)
    scores = max(1.0, n / size.n)
    vectors = (2 * passes + 10) * size.numbers
    matrices = 2 * passes * (scores - 1) * size.numbers
    if "hess" in required_methods(algorithm):
        matrices += config.rounds * participation * size.numbers * n / 2
    return POINT + ROUND * config.rounds + vectors / SPEED + matrices / MATRIX_SPEED


def estimate_memory(config: Experiment) -> tuple[float, float] | None:
    """Return the bytes of any process of a run, and those that its hosts share; None if the data size is unknown."""
    size = data_size(config.data)
    if not size.known:
        return None
    n = count_parameters(config, size.n)
    vectors = n if "hess" in required_methods(config.algorithm) else STATES
    numbers = COPIES * size.numbers + config.data.clients * n * vectors
    return PROCESS, numbers * np.dtype(config.dtype).itemsize


class DataSize(NamedTuple):
    """The size of a data set according to [data]: all ``numbers`` in its samples, and n features."""

    numbers: float
    n: int
    known: bool = True


def data_size(data: Data) -> DataSize:
    """Return samples × features of all clients, and the features; a guess if the table [data] does not say."""
    values: dict[str, Any] = {key: getattr(data, key, None) for key in SIZE_KEYS}
    if values["path"] is not None:
        path = os.path.expanduser(values["path"])
        return DataSize(os.path.getsize(path) / 8 if os.path.isfile(path) else UNKNOWN, 100, False)
    n = values["features"] or (values["channels"] * values["size"] ** 2 if values["channels"] else None)
    if n is None:
        return DataSize(UNKNOWN, 100, False)
    d = values["samples"] or ((values["least"] + values["most"]) / 2 if values["most"] else n)
    return DataSize(float(data.clients * d * n), n)


def count_parameters(config: Experiment, n: int) -> int:
    """Return the number of parameters of a model of n features; n if the problem needs the data to know."""
    data = Dataset()
    data.n = n
    data.classes = len(list_classes(getattr(config.data, "classes", None) or CLASSES))
    data.sizes = np.full(1, n)
    try:
        return config.problem.dim(data)
    except Exception:  # a user's class may need more of the data
        return n
