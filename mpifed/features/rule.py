"""Rules about settings that conflict, and the sentences that say so."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.core.errors import UserError
from mpifed.core.toml import toml_value
from mpifed.features.matching import default_algorithm
from mpifed.features.settings import Experiment
from mpifed.federation.method import has_proximal_step
from mpifed.federation.participation.selection import Selector
from mpifed.federation.traits import Participation

Judged = TypeVar("Judged", contravariant=True)
ONE = np.ones(1)  # one client with one sample, to ask whether a method states its work
Violation = Mapping[str, Any] | None  # words of a sentence, where settings break a rule


class LoadedSettings(NamedTuple):
    """Settings with the number ``m`` of clients and the ``selector`` of a round, known once data are loaded."""

    config: Experiment
    selector: Selector
    m: int


class Rule(NamedTuple, Generic[Judged]):
    """Conflict of settings: ``when`` detects it, ``sentence`` says what is wrong and what would be right.

    ``when`` returns words for the sentence, or anything else that is true. Further words are those of WORDS and the
    settings themselves, such as {system.least}; in rules over Counted also {selector} and {m}.
    """

    when: Callable[[Judged], Any]
    sentence: str


def explain_violations(rules: Iterable[Rule[Judged]], judged: Judged, words: "SentenceWords") -> Iterator[str]:
    """Yield the sentences of the rules that ``judged`` breaks; all of them may name ``words``."""
    for rule in rules:
        violation = rule.when(judged)
        if violation:
            rule_words = violation if isinstance(violation, Mapping) else {}
            yield rule.sentence.format_map(SentenceWords(words.settings, {**words, **rule_words}))


def refuse_settings(settings: Experiment, rules: Iterable[Rule[Experiment]]) -> None:
    """Raise UserError with the sentence of the first rule that settings break."""
    for sentence in explain_violations(rules, settings, SentenceWords(settings)):
        raise UserError(sentence)


def refuse_loaded(counted: LoadedSettings, rules: Iterable[Rule[LoadedSettings]]) -> None:
    """Raise UserError with the sentence of the first rule that settings with a number of clients break."""
    for sentence in explain_violations(
        rules, counted, SentenceWords(counted.config, {"selector": counted.selector, "m": counted.m})
    ):
        raise UserError(sentence)


class SentenceWords(dict[str, Any]):
    """Words that a sentence may name: the ``known`` ones, and others computed from settings when they are named."""

    def __init__(self, settings: Experiment, known: Mapping[str, Any] | None = None) -> None:
        super().__init__(known or {})
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
    "when": lambda c: "some rounds" if c.algorithm.participation is Participation.SELECTED_OR_ALL else "every round",
    "asynchronous_methods": lambda c: list_methods(lambda method: method.asynchronous),
    "graph_methods": lambda c: list_methods(lambda method: method.on_graph),
    "proximal_methods": lambda c: list_methods(has_proximal_step),
    "partial_methods": lambda c: list_methods(lambda method: method.local_steps(ONE) is not None),
}


def list_methods(has: Callable[[Algorithm], Any]) -> str:
    """Return the names of the built-in methods for which ``has`` is true with their default options."""
    return ", ".join(name for name in Algorithm.choices if has(default_algorithm(name)))
