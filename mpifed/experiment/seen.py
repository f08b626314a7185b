"""What client methods see of clients: losses as they are, times a weight, augmented, or with draws of their own."""

import numpy as np

from mpifed.core.errors import UserError
from mpifed.data.base import Dataset
from mpifed.data.sample_columns import totals_of
from mpifed.features.settings import Experiment
from mpifed.federation.augmented import Augmented, AugmentedScaled
from mpifed.federation.local import Local
from mpifed.federation.scaled_local import ScaledLocal, shares
from mpifed.federation.seeded import Seeded, SeededScaled
from mpifed.federation.setup import Setup
from mpifed.problems.base import Problem


def seen(setup: Setup, config: Experiment, data: Dataset) -> Setup:
    """The setup with what client methods see, and weights. UserError where these are of another number of clients."""
    given = config.objective.weights if data.client_weights is None else data.client_weights
    sizes = totals_of(data)
    if not isinstance(given, str) and len(given) != setup.m:
        raise UserError(
            f"objective.weights has {len(given)} numbers, and there are {setup.m} clients: it must have one for each"
        )
    factors = shares(given, sizes)
    plain, scaled = seen_by(config.problem)
    if factors is None:
        return setup._replace(local=plain)
    local = plain if setup.algorithm.upload.averaged else scaled
    per_sample = setup.m / np.sum(sizes).item() if config.objective.weights == "samples" else 0.0
    return setup._replace(factors=factors, per_sample=per_sample, local=local)


def seen_by(problem: Problem) -> tuple[type[Local], type[ScaledLocal]]:
    """What client methods see, without and with weights."""
    if problem.augments():
        return Augmented, AugmentedScaled
    return (Seeded, SeededScaled) if problem.has("seeded_grad") else (Local, ScaledLocal)
