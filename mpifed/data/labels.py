"""Labels in the form that a problem needs: texts become numbers, and notes say what was mapped or looks wrong."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from mpifed.core.arrays import row_offsets
from mpifed.core.errors import UserError
from mpifed.core.memory import check_text_length, text_capacity
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array, SampleMatrix
from mpifed.data.dataset import Dataset, DatasetWrapper, iter_client_ranges
from mpifed.data.formats.lines import is_number

# any numbers; 0, 1 … C−1; 0 and 1, or -1 and 1; times t > 0 of events, and −t of samples that were censored at t
LabelKind = Literal["numbers", "classes", "binary", "survival"]
SURVIVAL = "labels must be times above 0 of events, and times with a minus of censored samples"
SHOWN = 6  # labels named in a sentence
READ = 1 << 16  # samples read at a time
NEAR = 2.0**-26  # of the mean time: R's survival takes times that differ by less as the same, with timefix
EXACT = 2**24  # whole numbers up to this one are the same in float32


class RenumberedDataset(DatasetWrapper):
    """A data set with the labels ``old`` (rising) replaced by 0, 1 …"""

    def __init__(self, dataset: Dataset, old: Array, note: str) -> None:
        super().__init__(dataset, classes=len(old), notes=(*dataset.notes, note))
        self.old = old

    def read_clients(self, lo: int, hi: int, role: str) -> tuple[SampleMatrix, Array]:
        X, y = super().read_clients(lo, hi, role)
        return X, np.searchsorted(self.old.astype(y.dtype), y).astype(y.dtype)

    def values(self) -> Array | None:
        return np.arange(self.classes)


def add_note(data: Dataset, note: str) -> Dataset:
    """Return the data set with one more note."""
    return DatasetWrapper(data, notes=(*data.notes, note))


def fit_labels(data: Dataset, kind: LabelKind) -> Dataset:
    """Return the data set with labels of this kind, and notes on them; ValueError if they cannot be meant as this."""
    if kind == "numbers":
        if data.names:
            right = "logistic" if len(data.names) == 2 else "softmax"
            raise ValueError(
                f"labels are text ({join_words(data.names)}), and it needs numbers; problem={right} takes them"
            )
        return data
    values = data.values()
    if values is None or not len(values):
        return data
    if data.stated:
        return fit_stated(data, values, kind)
    if kind == "survival":
        return fit_times(data, values)
    if len(values) == 1:
        return fit_single(data, values[0], kind)
    return fit_binary(data, values) if kind == "binary" else fit_classes(data, values)


def fit_binary(data: Dataset, values: Array) -> Dataset:
    """Return data of two labels: 0 and 1 or -1 and 1 stay, of two other whole numbers the smaller one becomes 0."""
    if len(values) > 2:
        labels = join_words(data.names or format_numbers(values))
        right = "softmax" if data.names or are_whole(values) else "least-squares"
        raise ValueError(f"it needs two classes, but there are {len(values)}: {labels}; problem={right} takes them")
    # Numbers that are not whole are left to the problem, whose error says what it needs.
    if list(values) in ([0, 1], [-1, 1]) or not are_whole(values):
        return data
    return RenumberedDataset(data, values, "labels {} and {} become 0 and 1".format(*format_numbers(values)))


def fit_classes(data: Dataset, values: Array) -> Dataset:
    """Return data with labels 0 … C−1, of which some may be absent; labels -1 and 1, or 1 … C, are renumbered."""
    if list(values) == [-1, 1]:
        return RenumberedDataset(data, values, "labels -1 and 1 become 0 and 1")
    if not are_whole(values) or values[0] < 0:
        wrong = values[(values < 0) | (values != np.floor(values)) | (values > EXACT)][0]
        right = "number them from 0" if wrong == np.floor(wrong) else "problem=least-squares takes any numbers"
        raise ValueError(f"labels must be whole numbers 0, 1 … C−1, but there is {wrong:.10g}; {right}")
    if values[0] == 1 and values[-1] == len(values):
        return RenumberedDataset(data, values, f"labels 1 … {len(values)} are numbered 0 … {len(values) - 1}")
    return note_empty_classes(data, values)


def fit_stated(data: Dataset, values: Array, kind: LabelKind) -> Dataset:
    """Return data whose classes the study states, with a note on empty ones; ValueError if labels are no classes."""
    if kind == "survival":
        raise ValueError(f"{SURVIVAL}, and data.classes says that they are classes: leave it out")
    if kind == "binary" and data.classes != 2:
        raise ValueError(f"it needs two classes, and data.classes says {data.classes}; problem=softmax takes them")
    return note_empty_classes(data, values)


def note_empty_classes(data: Dataset, values: Array) -> Dataset:
    """Return the data set with a note on the classes that are not among the labels ``values``."""
    absent = np.delete(np.arange(data.classes), values.astype(np.int64))
    if not len(absent):
        return data
    empty = "class {} is empty" if len(absent) == 1 else f"{len(absent)} of {data.classes} classes are empty ({{}})"
    return add_note(data, f"{empty.format(join_words(absent))}: no sample has such a label")


def fit_single(data: Dataset, value: float, kind: LabelKind) -> Dataset:
    """Return data that have one label only, with a note; ValueError where a problem cannot compute with it."""
    (shown,) = map(repr, data.names) if data.names else format_numbers([value])
    if kind == "classes" and value <= 0:
        raise ValueError(f"all labels are {shown}, and it needs at least 2 classes")
    return add_note(data, f"all labels are {shown}: with one class there is nothing to tell apart")


def fit_times(data: Dataset, values: Array) -> Dataset:
    """Return data with survival labels, t for an event and −t if censored, and a note on clients without events."""
    if data.names:
        raise ValueError(f"{SURVIVAL}, but they are text ({join_words(data.names)})")
    if values[-1] < 0:
        raise ValueError(f"{SURVIVAL}, but all have a minus: no event happened")
    data = note_near_ties(data, np.unique(np.abs(values)))
    without: list[int] = []
    for lo, hi in iter_client_ranges(data.sizes, 1, READ):
        events = np.add.reduceat(data.rows(lo, hi)[1] > 0, row_offsets(data.sizes[lo:hi])[:-1], dtype=np.int64)
        without += (lo + np.flatnonzero(events == 0)).tolist()
    if not without:
        return data
    if len(without) == 1:
        return add_note(data, f"client {without[0]} has no event: its likelihood is 1 for all x")
    ids = join_words(without)
    return add_note(data, f"{len(without)} of {data.m} clients have no event ({ids}): their likelihood is 1 for all x")


def note_near_ties(data: Dataset, values: Array) -> Dataset:
    """Return data with a note on times of one client that differ only by rounding; ``values``: all times, rising."""
    tolerance = NEAR * max(1.0, float(values.mean()))
    if not (np.diff(values) <= tolerance).any():
        return data
    count = 0
    for lo, hi in iter_client_ranges(data.sizes, 1, READ):
        y = data.rows(lo, hi)[1]
        for times in np.split(y, row_offsets(data.sizes[lo:hi])[1:-1]):
            times = times[np.argsort(np.abs(times), kind="stable")]
            steps = np.diff(np.abs(times))
            count += int(np.sum((steps > 0) & (steps <= tolerance) & ((times[1:] > 0) | (times[:-1] > 0))))
    if not count:
        return data
    return add_note(
        data,
        f"{count:,} times differ from the one before at their client by {tolerance:.2g} at most, which are ties in R's "
        "survival (timefix) and none here: round the times where they are meant to be the same",
    )


def are_whole(values: Array) -> bool:
    """Return whether all values are whole numbers that float32 holds exactly."""
    return bool(np.all((values == np.floor(values)) & (np.abs(values) <= EXACT)))


def format_numbers(values: Sequence[float] | Array) -> list[str]:
    return [f"{value:.10g}" for value in values]


def format_exactly(values: Array) -> list[str]:
    """Return numbers as texts that differ where the numbers do, with 7 for 7.0."""
    return [text.removesuffix(".0") for text in values.astype(str).tolist()]


def join_words(words: Sequence[Any] | Array) -> str:
    """Return words with commas between them, long ones shortened and many of them folded."""
    return ", ".join(shorten(str(word)) for word in abridge(words))


def abridge(words: Sequence[Any] | Array) -> Any:
    """Return a sequence of words or numbers; of a long one the first items, … and the last."""
    return words if len(words) <= SHOWN else [*words[: SHOWN - 2], "…", words[-1]]


def number_texts(parts: Sequence[Array], source: str) -> tuple[list[Array], tuple[str, ...]]:
    """Return arrays of texts as numbers 0, 1 … of their sorted distinct texts, and these; () where all are numbers.

    Raises UserError, which names ``source``, if some arrays have texts and others numbers, or if a text is empty.
    """
    texts = [part.dtype.kind in "SU" for part in parts]
    if not any(texts):
        return list(parts), ()
    if not all(texts):
        raise UserError(f"some labels of {source} are text and some are numbers: they must be of one kind")
    for part in parts:
        check_text_length(text_capacity(part.dtype), f"the labels of {source}")
    try:
        decoded = [np.char.strip(np.char.decode(part, "utf-8") if part.dtype.kind == "S" else part) for part in parts]
    except UnicodeDecodeError as error:
        raise UserError(f"a label of {source} is no text in UTF-8: {error.object!r}") from None
    # Sorted in all parts together: a class that only test samples have must not shift the numbers of others.
    names, codes = np.unique(np.concatenate(decoded), return_inverse=True)
    if not names[0]:
        raise UserError(f"a label of {source} is an empty text: every sample needs a label")
    return np.split(codes.ravel(), np.cumsum([len(part) for part in parts])[:-1]), tuple(map(str, names))


def list_classes(stated: int | Sequence[int | str]) -> list[int | str]:
    """Return the labels of the classes that a study states, 0 … C−1 if it states their number C."""
    return list(range(stated)) if isinstance(stated, int) else list(stated)


def number_by_classes(stated: int | Sequence[int | str], y: Array, source: str) -> Array:
    """Return the number of each label in ``stated``, the classes or their number C; UserError for a label not there."""
    words = list(map(str, list_classes(stated)))
    shown = toml_value(stated)
    if len(set(words)) < max(2, len(words)):
        raise UserError(f"data.classes = {shown} is wrong: it must be a number of classes or their labels, at least 2")
    classes: Array = np.array(words)
    if y.dtype.kind in "SU":
        labels = np.char.strip(np.char.decode(y, "utf-8") if y.dtype.kind == "S" else y)
    else:
        labels = y.astype(np.float64)
        classes = np.array([float(word) if is_number(word) else np.nan for word in words])
    order = np.argsort(classes, kind="stable")
    at = order[np.minimum(np.searchsorted(classes[order], labels), len(order) - 1)]
    wrong = np.flatnonzero(classes[at] != labels)
    if wrong.size:
        label = labels[wrong[0]]
        text = repr(str(label)) if y.dtype.kind in "SU" else f"{label:.10g}"
        raise UserError(f"{source} has the label {text}, which is none of data.classes = {shown}: name all classes")
    return at


def note_text_labels(names: Sequence[str], column: str = "", order: str = "sorted order") -> str:
    """Return a note on labels that are texts, with the number of each; ``column`` is a phrase for their column."""
    whose = f"labels of {column}" if column else "labels"
    return f"{whose} are text, numbered in {order}: {list_numbers(names)}"


def note_stated_labels(classes: Sequence[int | str]) -> str:
    """Return a note on labels whose classes a study states, with the number of each."""
    return f"labels are numbered as data.classes says: {list_numbers(classes)}"


def list_numbers(names: Sequence[int | str]) -> str:
    """Return the text "name is number" for labels, with commas between them."""
    texts = [repr(shorten(str(name))) if name == str(name) else str(name) for name in names]
    return ", ".join(abridge([f"{text} is {number}" for number, text in enumerate(texts)]))


def shorten(name: str) -> str:
    return name if len(name) <= 20 else name[:19] + "…"


def count_classes(data: Dataset) -> int:
    """Return the number C of classes; ValueError if labels are no classes, or all of one class."""
    if data.classes < 2:
        raise ValueError("labels must be whole numbers 0, 1 … C−1 of at least 2 classes")
    return data.classes
