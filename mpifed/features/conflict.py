"""Conflicts: two parts of a study that do not go together, when that is judged, and the sentence that says so."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, NamedTuple

from msgspec import to_builtins

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.core.component import shorten_value
from mpifed.core.errors import UserError
from mpifed.core.toml import toml_value
from mpifed.data.dataset import Dataset
from mpifed.features.conditions import ONE
from mpifed.features.matching import default_algorithm
from mpifed.features.settings import Experiment
from mpifed.federation.method import has_proximal_step
from mpifed.federation.participation.selection import Selector
from mpifed.federation.traits import Participation


class Moment(Enum):
    """Moment at which a conflict is judged: the first at which all that it is about is known."""

    READ = "when a study is read"
    STUDY = "before data are loaded"
    DATA = "when sizes are known"


class LoadedSettings(NamedTuple):
    """Settings with the loaded data, their ``m`` clients, and the ``selector`` of a round."""

    config: Experiment
    selector: Selector
    m: int
    data: Dataset


class Conflict(NamedTuple):
    """Two parts of a study that do not go together, with the sentence that says what would be right.

    They conflict where both are set, if they are keys. Otherwise ``when`` gets the settings (at Moment.DATA the
    LoadedSettings) and returns words for the sentence, or anything else that is true where they conflict. Further words
    of the sentence are those of WORDS and the settings themselves, such as {system.least}; at Moment.DATA also
    {selector} and {m}.

        >>> class Log(mpifed.extend.Plugin):
        ...     conflicts = [mpifed.extend.Conflict(("Log", "masks"), "Log does not go with masks", lambda c: c.masks)]
    """

    parts: tuple[str, str]
    sentence: str
    when: Callable[[Any], Any] | None = None
    at: Moment = Moment.STUDY

    def judge(self, settings: Any) -> Any:
        """Return what ``when`` does, or whether both parts are set."""
        return all(is_set(settings, key) for key in self.parts) if self.when is None else self.when(settings)


def is_set(settings: Any, key: str) -> bool:
    """Return whether a key of a study, such as system.deadline, has a value other than none, 0 and false."""
    value = settings
    for name in key.split("."):
        value = getattr(value, name, None)
    return bool(value)


def explain_conflicts(rows: Iterable[Conflict], settings: Experiment | LoadedSettings) -> Iterator[str]:
    """Yield the sentences of the conflicts that settings, or loaded settings, have."""
    for row in rows:
        violation = row.judge(settings)
        if violation:
            yield row.sentence.format_map(SentenceWords(settings, violation))


def refuse_conflicts(rows: Iterable[Conflict], at: Moment, settings: Experiment | LoadedSettings) -> None:
    """Raise UserError with the sentence of the first conflict that is judged at this moment."""
    for sentence in explain_conflicts((row for row in rows if row.at is at), settings):
        raise UserError(sentence)


class SentenceWords(dict[str, Any]):
    """Words that a sentence may name: those of a violation, and others computed from settings when they are named."""

    def __init__(self, settings: Experiment | LoadedSettings, violation: Any) -> None:
        loaded = settings._asdict() if isinstance(settings, LoadedSettings) else {"config": settings}
        super().__init__(loaded | (dict(violation) if isinstance(violation, Mapping) else {}))
        self.settings = loaded["config"]

    def __missing__(self, word: str) -> Any:
        return WORDS[word](self.settings) if word in WORDS else getattr(self.settings, word)


WORDS: dict[str, Callable[[Any], Any]] = {
    "name": lambda c: c.algorithm.label(),
    "loss": lambda c: c.problem.label(),
    "selected": lambda c: c.selection.label(),
    "up": lambda c: c.compress.up.label(),
    "weights": lambda c: toml_value(c.objective.weights),
    "attack_name": lambda c: c.attack.label(),
    "robust_name": lambda c: c.robust.label(),
    "edges": lambda c: c.graph.label(),
    "absence": lambda c: c.system.absence(),
    "absent": lambda c: shorten_value(to_builtins(getattr(c.system, c.system.absence()))),
    "when": lambda c: "some rounds" if c.algorithm.participation is Participation.SELECTED_OR_ALL else "every round",
    "asynchronous_methods": lambda c: list_methods(lambda method: method.asynchronous),
    "graph_methods": lambda c: list_methods(lambda method: method.on_graph),
    "proximal_methods": lambda c: list_methods(has_proximal_step),
    "partial_methods": lambda c: list_methods(lambda method: method.local_steps(ONE) is not None),
}


def list_methods(has: Callable[[Algorithm], Any]) -> str:
    """Return the names of the built-in methods for which ``has`` is true with their default options."""
    return ", ".join(name for name in Algorithm.choices if has(default_algorithm(name)))
