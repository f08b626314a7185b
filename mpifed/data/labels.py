"""Labels as a problem needs them: texts become numbers, and what is mapped or looks wrong is noted."""

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from mpifed.core.arrays import starts_of
from mpifed.core.errors import UserError
from mpifed.core.memory import characters, check_text
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array, Matrix
from mpifed.data.dataset import Dataset, Wrapped, ranges
from mpifed.data.formats.lines import is_number

# any numbers; 0, 1 … C−1; 0 and 1, or -1 and 1; times t > 0 of events, and −t of samples that were censored at t
Kind = Literal["numbers", "classes", "binary", "survival"]
SURVIVAL = "labels must be times above 0 of events, and times with a minus of censored samples"
SHOWN = 6  # labels named in a sentence
READ = 1 << 16  # samples read at a time
NEAR = 2.0**-26  # of the mean time: R's survival takes times that differ by less as the same, with timefix
EXACT = 2**24  # whole numbers up to this one are the same in float32


class Renumbered(Wrapped):
    """The data set ``whole`` with the labels ``old`` (rising) replaced by 0, 1 …"""

    def __init__(self, whole: Dataset, old: Array, note: str) -> None:
        super().__init__(whole, classes=len(old), notes=(*whole.notes, note))
        self.old = old

    def part(self, lo: int, hi: int, test: bool) -> tuple[Matrix, Array]:
        X, y = super().part(lo, hi, test)
        return X, np.searchsorted(self.old.astype(y.dtype), y).astype(y.dtype)

    def values(self) -> Array | None:
        return np.arange(self.classes)


def noted(data: Dataset, note: str) -> Dataset:
    return Wrapped(data, notes=(*data.notes, note))


def fitted(data: Dataset, kind: Kind) -> Dataset:
    """The data set with labels of this kind; ``notes`` says what was mapped, and which classes are empty.

    ValueError where labels cannot be meant as this kind.
    """
    if kind == "numbers":
        if data.names:
            right = "logistic" if len(data.names) == 2 else "softmax"
            raise ValueError(
                f"labels are text ({listed(data.names)}), and it needs numbers; problem={right} takes them"
            )
        return data
    values = data.values()
    if values is None or not len(values):
        return data
    if data.stated:
        return as_stated(data, values, kind)
    if kind == "survival":
        return times(data, values)
    if len(values) == 1:
        return single(data, values[0], kind)
    return binary(data, values) if kind == "binary" else numbered(data, values)


def binary(data: Dataset, values: Array) -> Dataset:
    """Two labels: 0 and 1 or -1 and 1 as they are; of two other whole numbers the smaller one becomes 0."""
    if len(values) > 2:
        found = listed(data.names or numbers(values))
        right = "softmax" if data.names or whole(values) else "least-squares"
        raise ValueError(f"it needs two classes, but there are {len(values)}: {found}; problem={right} takes them")
    # Numbers that are not whole are left to the check of the problem, whose sentence says what it needs.
    if list(values) in ([0, 1], [-1, 1]) or not whole(values):
        return data
    return Renumbered(data, values, "labels {} and {} become 0 and 1".format(*numbers(values)))


def numbered(data: Dataset, values: Array) -> Dataset:
    """Labels -1 and 1, or 1 … C, are numbered from 0; labels 0 … C−1 stay as they are, also where some are absent."""
    if list(values) == [-1, 1]:
        return Renumbered(data, values, "labels -1 and 1 become 0 and 1")
    if not whole(values) or values[0] < 0:
        wrong = values[(values < 0) | (values != np.floor(values)) | (values > EXACT)][0]
        right = "number them from 0" if wrong == np.floor(wrong) else "problem=least-squares takes any numbers"
        raise ValueError(f"labels must be whole numbers 0, 1 … C−1, but there is {wrong:.10g}; {right}")
    if values[0] == 1 and values[-1] == len(values):
        return Renumbered(data, values, f"labels 1 … {len(values)} are numbered 0 … {len(values) - 1}")
    return with_empty(data, values)


def as_stated(data: Dataset, values: Array, kind: Kind) -> Dataset:
    """Labels 0 … C−1 of the classes that a study states."""
    if kind == "survival":
        raise ValueError(f"{SURVIVAL}, and data.classes says that they are classes: leave it out")
    if kind == "binary" and data.classes != 2:
        raise ValueError(f"it needs two classes, and data.classes says {data.classes}; problem=softmax takes them")
    return with_empty(data, values)


def with_empty(data: Dataset, values: Array) -> Dataset:
    """The data set with a note on the classes that none of these labels has."""
    absent = np.delete(np.arange(data.classes), values.astype(np.int64))
    if not len(absent):
        return data
    empty = "class {} is empty" if len(absent) == 1 else f"{len(absent)} of {data.classes} classes are empty ({{}})"
    return noted(data, f"{empty.format(listed(absent))}: no sample has such a label")


def single(data: Dataset, value: float, kind: Kind) -> Dataset:
    """Data with one label only: a note, where a problem can compute with it at all."""
    (shown,) = map(repr, data.names) if data.names else numbers([value])
    if kind == "classes" and value <= 0:
        raise ValueError(f"all labels are {shown}, and it needs at least 2 classes")
    return noted(data, f"all labels are {shown}: with one class there is nothing to tell apart")


def times(data: Dataset, values: Array) -> Dataset:
    """Times of events, and those of censored samples with a minus; a note names clients without an event."""
    if data.names:
        raise ValueError(f"{SURVIVAL}, but they are text ({listed(data.names)})")
    if values[-1] < 0:
        raise ValueError(f"{SURVIVAL}, but all have a minus: no event happened")
    data = near_ties(data, np.unique(np.abs(values)))
    without: list[int] = []
    for lo, hi in ranges(data.sizes, 1, READ):
        events = np.add.reduceat(data.rows(lo, hi)[1] > 0, starts_of(data.sizes[lo:hi])[:-1], dtype=np.int64)
        without += (lo + np.flatnonzero(events == 0)).tolist()
    if not without:
        return data
    if len(without) == 1:
        return noted(data, f"client {without[0]} has no event: its likelihood is 1 for all x")
    named = listed(without)
    return noted(data, f"{len(without)} of {data.m} clients have no event ({named}): their likelihood is 1 for all x")


def near_ties(data: Dataset, values: Array) -> Dataset:
    """The data with a note on times of a client, of which one is an event, that differ as rounding does.

    ``values``: the distinct times of all, rising.
    """
    tolerance = NEAR * max(1.0, float(values.mean()))
    if not (np.diff(values) <= tolerance).any():
        return data
    count = 0
    for lo, hi in ranges(data.sizes, 1, READ):
        y = data.rows(lo, hi)[1]
        for own in np.split(y, starts_of(data.sizes[lo:hi])[1:-1]):
            own = own[np.argsort(np.abs(own), kind="stable")]
            steps = np.diff(np.abs(own))
            count += int(np.sum((steps > 0) & (steps <= tolerance) & ((own[1:] > 0) | (own[:-1] > 0))))
    if not count:
        return data
    return noted(
        data,
        f"{count:,} times differ from the one before at their client by {tolerance:.2g} at most, which are ties in R's "
        "survival (timefix) and none here: round the times where they are meant to be the same",
    )


def whole(values: Array) -> bool:
    return bool(np.all((values == np.floor(values)) & (np.abs(values) <= EXACT)))


def numbers(values: Sequence[float] | Array) -> list[str]:
    return [f"{value:.10g}" for value in values]


def exact(values: Array) -> list[str]:
    """Numbers as texts that differ where the numbers do, 7 in place of 7.0."""
    return [text.removesuffix(".0") for text in values.astype(str).tolist()]


def listed(words: Sequence[Any] | Array) -> str:
    return ", ".join(shortened(str(word)) for word in folded(words))


def folded(words: Sequence[Any] | Array) -> Any:
    """A sequence of words or numbers, or of many the first ones, … and the last."""
    return words if len(words) <= SHOWN else [*words[: SHOWN - 2], "…", words[-1]]


def numbers_of_texts(parts: Sequence[Array], source: str) -> tuple[list[Array], tuple[str, ...]]:
    """Arrays of texts as numbers 0, 1 … of the sorted distinct texts, and these texts; () where all are numbers.

    UserError, which names ``source``, where some arrays have texts and others numbers, or where a text is empty.
    """
    texts = [part.dtype.kind in "SU" for part in parts]
    if not any(texts):
        return list(parts), ()
    if not all(texts):
        raise UserError(f"some labels of {source} are text and some are numbers: they must be of one kind")
    for part in parts:
        check_text(characters(part.dtype), f"the labels of {source}")
    try:
        decoded = [np.char.strip(np.char.decode(part, "utf-8") if part.dtype.kind == "S" else part) for part in parts]
    except UnicodeDecodeError as error:
        raise UserError(f"a label of {source} is no text in UTF-8: {error.object!r}") from None
    # Of all parts together: a class that only test samples have must not shift the numbers of the others.
    names, codes = np.unique(np.concatenate(decoded), return_inverse=True)
    if not names[0]:
        raise UserError(f"a label of {source} is an empty text: every sample needs a label")
    return np.split(codes.ravel(), np.cumsum([len(part) for part in parts])[:-1]), tuple(map(str, names))


def classes_of(given: int | Sequence[int | str]) -> list[int | str]:
    """The labels of the classes that a study states: 0 … C−1 where it states their number."""
    return list(range(given)) if isinstance(given, int) else list(given)


def by_classes(given: int | Sequence[int | str], y: Array, source: str) -> Array:
    """Labels, numbers or texts, as the places 0, 1 … of their classes in ``given``; a number C: 0 … C−1.

    UserError, which names ``source``, for a label that is none of them.
    """
    words = list(map(str, classes_of(given)))
    shown = toml_value(given)
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
        named = repr(str(label)) if y.dtype.kind in "SU" else f"{label:.10g}"
        raise UserError(f"{source} has the label {named}, which is none of data.classes = {shown}: name all classes")
    return at


def about_texts(names: Sequence[str], column: str = "", order: str = "sorted order") -> str:
    """Which number is which text of the labels, in a sentence; ``column`` is what to call the column they are in."""
    whose = f"labels of {column}" if column else "labels"
    return f"{whose} are text, numbered in {order}: {pairs(names)}"


def about_stated(classes: Sequence[int | str]) -> str:
    """The same of labels whose classes a study states."""
    return f"labels are numbered as data.classes says: {pairs(classes)}"


def pairs(names: Sequence[int | str]) -> str:
    """Which label is which number."""
    texts = [repr(shortened(str(name))) if name == str(name) else str(name) for name in names]
    return ", ".join(folded([f"{text} is {number}" for number, text in enumerate(texts)]))


def shortened(name: str) -> str:
    return name if len(name) <= 20 else name[:19] + "…"


def class_count(data: Dataset) -> int:
    """The number C of classes; ValueError where the labels are no classes, or all of one class."""
    if data.classes < 2:
        raise ValueError("labels must be whole numbers 0, 1 … C−1 of at least 2 classes")
    return data.classes
