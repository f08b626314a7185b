"""A rule: settings that do not go together, and the sentence that says so."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.core.errors import UserError
from mpifed.core.toml import toml_value
from mpifed.features.matching import default
from mpifed.features.settings import Experiment
from mpifed.federation.method import proximal
from mpifed.federation.participation.selection import Selector
from mpifed.federation.traits import Takes

Judged = TypeVar("Judged", contravariant=True)
ONE = np.ones(1)  # samples of a client, where only being known counts
Found = Mapping[str, Any] | None  # words of a sentence, where settings break a rule


class Counted(NamedTuple):
    """Settings once data are loaded: also the number ``m`` of clients, and the ``selector`` of those in a round."""

    config: Experiment
    selector: Selector
    m: int


class Rule(NamedTuple, Generic[Judged]):
    """``when`` settings do not go together, ``sentence`` says what is wrong and what would be right.

    ``when`` returns the words of the sentence that it found, or anything else that is true. Other words are those of
    WORDS, and the settings themselves, such as {system.least}; of rules over Counted also {selector} and {m}.
    """

    when: Callable[[Judged], Any]
    sentence: str


def broken(rules: Iterable[Rule[Judged]], judged: Judged, words: "Words") -> Iterator[str]:
    """The sentences of the rules that are broken; ``words`` are those that all of them may name."""
    for rule in rules:
        found = rule.when(judged)
        if found:
            own = found if isinstance(found, Mapping) else {}
            yield rule.sentence.format_map(Words(words.settings, {**words, **own}))


def refuse(settings: Experiment, rules: Iterable[Rule[Experiment]]) -> None:
    """UserError with the sentence of the first rule that settings break."""
    for sentence in broken(rules, settings, Words(settings)):
        raise UserError(sentence)


def refuse_counted(counted: Counted, rules: Iterable[Rule[Counted]]) -> None:
    """The same once the number of clients is known."""
    for sentence in broken(rules, counted, Words(counted.config, {"selector": counted.selector, "m": counted.m})):
        raise UserError(sentence)


class Words(dict[str, Any]):
    """What a sentence may name; what is not among the ``given`` words is computed from settings where it is named."""

    def __init__(self, settings: Experiment, given: Mapping[str, Any] | None = None) -> None:
        super().__init__(given or {})
        self.settings = settings

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
    "absent": lambda c: getattr(c.system, c.system.absence()),
    "when": lambda c: "some rounds" if c.algorithm.takes is Takes.SELECTED_OR_ALL else "every round",
    "asynchronous_methods": lambda c: able(lambda method: method.asynchronous),
    "graph_methods": lambda c: able(lambda method: method.on_graph),
    "proximal_methods": lambda c: able(proximal),
    "partial_methods": lambda c: able(lambda method: method.local_steps(ONE) is not None),
}


def able(has: Callable[[Algorithm], Any]) -> str:
    """The built-in methods that are able to do something, with their default options."""
    return ", ".join(name for name in Algorithm.choices if has(default(name)))
