"""What a guarantee of privacy says of samples that others have changed, as means of several samples do."""

from mpifed.data.dataset import Dataset
from mpifed.data.labels import folded
from mpifed.features.findings import promises
from mpifed.features.settings import Experiment

ALL = "the training samples of all clients"


def of_all(c: Experiment) -> list[str]:
    """Sentences about samples that those of other clients change."""
    found = [c.data.common]
    if getattr(c.data, "standardise", None) == "pooled":
        found.append(f"features have mean 0 and deviation 1 over {ALL}")
    if getattr(c.data, "missing", "") == "mean":
        found.append(f"missing cells are filled with means over {ALL}")
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


def levels(c: Experiment, data: Dataset) -> list[str]:
    """A sentence about columns that are there because of what all samples hold, where uploads have a guarantee."""
    names = [repr(feature.name) for feature in data.table if feature.category]
    found = [f"the levels of {', '.join(folded(names))}"] if names else []
    found += ["the classes of the labels"] if data.names else []
    if not (found and promises(c)):
        return []
    return [after(f"{' and '.join(found)} are those that occur in the samples of all clients")]


def after(told: str) -> str:
    """The sentence with what it means for a guarantee."""
    return f"{told}, so one sample changes others too: privacy is guaranteed for the data after that, not before"
