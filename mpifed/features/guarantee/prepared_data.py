"""What a guarantee of privacy says of samples that others have changed, as means of several samples do."""

from collections.abc import Iterator

from mpifed.core.component import fields_of
from mpifed.data.dataset import Dataset
from mpifed.data.inferred import CLASSES, Inferred
from mpifed.data.labels import folded
from mpifed.features.findings import promises
from mpifed.features.settings import Experiment

ALL = "the training samples of all clients"


def of_all(c: Experiment) -> list[str]:
    """Sentences about samples that those of other clients change."""
    rule = getattr(c.data, "partition", None) or getattr(c.data, "usual", None)
    found = [c.data.common, "" if rule is None else rule.common]
    if getattr(c.data, "standardise", None) == "pooled":
        found.append(f"features have mean 0 and deviation 1 over {ALL}")
    if getattr(c.data, "missing", "") == "mean":
        found.append(f"missing cells are filled with means over {ALL}")
    if getattr(c.data, "time", None) is not None:
        found.append("times of 0 become half of the least time in the samples of all clients")
    return [told for told in found if told]


def shared(c: Experiment) -> tuple[str, ...]:
    """The same of clients that never train."""
    return tuple(f"{told}, also of those that never train" for told in of_all(c))


def before_it(c: Experiment) -> list[str]:
    """Sentences about what was done to samples before a guarantee begins."""
    found = of_all(c)
    if getattr(c.data, "missing", "") == "client-mean":
        found.append(f"missing cells in a column of which a client knows nothing are filled with means over {ALL}")
    return [after(told) for told in found]


def inferred(c: Experiment, data: Dataset) -> list[str]:
    """Sentences about what the samples of all clients say of the data, where uploads have a guarantee."""
    if not promises(c):
        return []
    keys = fields_of(type(c.data))
    return [after(told, key if key in keys else "") for told, key in dict.fromkeys(inferences(c, data))]


def inferences(c: Experiment, data: Dataset) -> Iterator[Inferred]:
    """What is inferred from the samples of a run."""
    names = [repr(feature.name) for feature in data.table if feature.category]
    if names:
        levels = f"the levels of {', '.join(folded(names))}"
        yield Inferred(f"{levels} are those that occur in the samples of all clients")
    yield from data.inferred
    by_labels = c.problem.takes() in ("classes", "binary") or c.problem.has("predict")
    if by_labels and not data.stated and data.values() is not None:
        yield CLASSES


def after(told: str, key: str = "") -> str:
    """The sentence with what it means for a guarantee, and the ``key`` of [data] that states the same."""
    found = f"{told}, so one sample changes others too: privacy is guaranteed for the data after that, not before"
    return f"{found}; data.{key} states it instead" if key else found
