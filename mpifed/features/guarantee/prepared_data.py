"""Notes of a privacy guarantee about samples that depend on other samples, as by means over several."""

from collections.abc import Iterator

from mpifed.core.component import fields_of
from mpifed.data.dataset import CLASSES, Dataset, Inference
from mpifed.data.labels import abridge
from mpifed.features.conditions import guarantees_privacy
from mpifed.features.settings import Experiment

ALL = "the training samples of all clients"


def describe_pooled(c: Experiment) -> list[str]:
    """Return sentences where preprocessing one client depends on other clients' samples."""
    rule = getattr(c.data, "partition", None) or getattr(c.data, "default_partition", None)
    notes = [c.data.common, "" if rule is None else rule.common]
    if getattr(c.data, "standardise", None) == "pooled":
        notes.append(f"features have mean 0 and deviation 1 over {ALL}")
    if getattr(c.data, "missing", "") == "mean":
        notes.append(f"missing cells are filled with means over {ALL}")
    if getattr(c.data, "time", None) is not None:
        notes.append("times of 0 become half of the least time in the samples of all clients")
    return [note for note in notes if note]


def unseen_notes(c: Experiment) -> tuple[str, ...]:
    """Return sentences where preprocessing depends on all clients, those that never train included."""
    return tuple(f"{note}, also of those that never train" for note in describe_pooled(c))


def preprocessing_notes(c: Experiment) -> list[str]:
    """Return sentences about preprocessing that happens before a guarantee begins."""
    notes = describe_pooled(c)
    if getattr(c.data, "missing", "") == "client-mean":
        notes.append(f"missing cells in a column of which a client knows nothing are filled with means over {ALL}")
    return [add_consequence(note) for note in notes]


def inference_notes(c: Experiment, data: Dataset) -> list[str]:
    """Return sentences about what was inferred from all clients' samples, where uploads have a guarantee."""
    if not guarantees_privacy(c):
        return []
    keys = fields_of(type(c.data))
    return [add_consequence(note, key if key in keys else "") for note, key in dict.fromkeys(inferences(c, data))]


def inferences(c: Experiment, data: Dataset) -> Iterator[Inference]:
    """Yield what is inferred from the samples of a run."""
    names = [repr(feature.name) for feature in data.table if feature.category]
    if names:
        levels = f"the levels of {', '.join(abridge(names))}"
        yield Inference(f"{levels} are those that occur in the samples of all clients")
    yield from data.inferred
    by_labels = c.problem.takes() in ("classes", "binary") or c.problem.has("predict")
    if by_labels and not data.stated and data.values() is not None:
        yield CLASSES


def add_consequence(note: str, key: str = "") -> str:
    """Return a note with its consequence for a guarantee, and the ``key`` of [data] that states the same."""
    sentence = f"{note}, so one sample changes others too: privacy is guaranteed for the data after that, not before"
    return f"{sentence}; data.{key} states it instead" if key else sentence
