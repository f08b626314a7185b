"""Networks in training: dropout, random changes of samples, and half precision."""

from mpifed.core.promises import Keeps
from mpifed.features.feature import Feature, Housing
from mpifed.features.findings import batch_size
from mpifed.features.network_training.augmentation import Augmentation
from mpifed.features.network_training.dropout import Dropout
from mpifed.features.rule import Found, Rule
from mpifed.features.settings import Experiment
from mpifed.federation.host import Host
from mpifed.federation.view import View


def half_of_double(c: Experiment) -> Found:
    """The type of half precision that a network computes in, in a study of double precision."""
    half = getattr(c.problem, "autocast", None)
    return {"half": half} if half and c.dtype == "float64" else None


RULES: list[Rule[Experiment]] = [
    Rule(
        lambda c: c.problem.augments() and not batch_size(c),
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
    """A network whose local steps are random, or compute in half precision."""

    # Changes of samples are drawn from a stream of each client and stay where the samples are.
    keeps = Keeps.EVERYTHING

    rules = RULES

    def host(self, host: Host, housing: Housing) -> None:
        host.views += training_views(self.config)


def training_views(c: Experiment) -> list[View]:
    """What is random in the local steps of a study's problem."""
    found: list[View] = [Dropout(c.seed)] if c.problem.has("seeded_grad") else []
    # after dropout, which gives every step an f of its own: the samples of that one are changed
    return [*found, Augmentation(c.seed)] if c.problem.augments() else found
