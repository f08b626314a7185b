"""Options of networks in training: random changes of samples, and half precision."""

from mpifed.core.promises import Keeps
from mpifed.features.feature import Feature
from mpifed.features.rule import Found, Rule
from mpifed.features.settings import Experiment


def whole_batches(c: Experiment) -> bool:
    """Whether the method takes no mini-batches, whose samples could be augmented."""
    parts = (c.algorithm, getattr(c.algorithm, "solver", None))
    return not any(getattr(part, "batch_size", 0) for part in parts)


def half_of_double(c: Experiment) -> Found:
    """The type of half precision that a network computes in, in a study of double precision."""
    half = getattr(c.problem, "autocast", None)
    return {"half": half} if half and c.dtype == "float64" else None


RULES: list[Rule[Experiment]] = [
    Rule(
        lambda c: c.problem.augments() and whole_batches(c),
        "problem.augment is wrong: it changes samples of mini-batches, and {name} takes none here; where a method has "
        "some, write algorithm.batch_size = 10",
    ),
    Rule(
        half_of_double,
        'problem.autocast = "{half}" is wrong with dtype = "float64": it makes some layers of single precision compute '
        'in half of it, so write dtype = "float32"',
    ),
]


class NetworkTraining(Feature):
    """A network that augments samples or computes in half precision."""

    # Changes of samples come from f.rng and stay where the samples are.
    keeps = Keeps.EVERYTHING

    rules = RULES
