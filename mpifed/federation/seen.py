"""What client methods see of clients: losses as they are, times a weight, augmented, or with draws of their own."""

from mpifed.federation.augmented import Augmented, AugmentedScaled
from mpifed.federation.local import Local
from mpifed.federation.scaled_local import ScaledLocal
from mpifed.federation.seeded import Seeded, SeededScaled
from mpifed.problems.base import Problem


def seen_by(problem: Problem) -> tuple[type[Local], type[ScaledLocal]]:
    """What client methods see, without and with weights."""
    if problem.augments():
        return Augmented, AugmentedScaled
    return (Seeded, SeededScaled) if problem.has("seeded_grad") else (Local, ScaledLocal)
