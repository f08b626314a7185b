"""What does not go together: a part of the page "what goes with what", from the table of conflicts."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.engine.listed import list_conflicts
from mpifed.features.conflict import Conflict, Moment

Settings = dict[str, Any]
SLOW = {"speed": 1.0, "passes": 1.0}
TABLES: dict[str, Settings] = {  # part of a study -> settings with it
    "selection": {"selection": {"share": 0.3}},
    "importance": {"selection": "importance"},
    "asynchronous": {"system": SLOW, "asynchronous": {"arrivals": 2}},
    "graph": {"graph": "ring"},
    "absent clients": {"system": {"dropout": 0.1, "least": 6}},
    "partial work": {"system": SLOW | {"deadline": 1.0, "partial": True, "least": 6}},
    "compress.up": {"compress": {"up": "natural"}},
    "compress.down": {"compress": {"down": "natural"}},
    "masks": {"masks": {}},
    "attack": {"attack": "sign-flip"},
    "robust": {"robust": "median"},
    "weights": {"objective": {"weights": "samples"}},
    "penalty": {"objective": {"l1": 0.1}},
    "personal": {"record": {"personal": True}},
    "unseen": {"evaluate": {"unseen": 2}, "problem": "logistic"},
    "device": {"kernels": "torch"},
}
NOUNS = {  # words of sentences that depend on a study
    "name": "the method",
    "loss": "the problem",
    "mismatch": "the sentence says which function of a problem the method calls, and which methods can instead",
    "algorithm.asynchronous.why": "its rounds wait for every reply",
    "algorithm.mean_estimate.why": "its mean is over the selected alone",
    "algorithm.fixed_weights": "its nodes rely on the weights of earlier rounds",
    "when": "every round",
    "there": "the sentence lists those that it has",
    "needs": "the clipped gradients of samples",
    "right": 'masks.sums must be "float"',
    "with": "masks, compress and importance",
    "masks.threshold": "0.67",
    "needed": "k",
    "number": "a number",
    "what": "weights, offsets or exposures",
    "error": "the sentence says which",
    "selector.size": "s",
    "m": "m",
    "way": "up",
    "key": "…",
}
REASONS = {  # rows whose whole sentence comes from a part
    "weights or offsets of samples": "the sentence lists the problems that take them",
    "a promise": "a method with a guarantee, `--survive` or a device asks every part to say that it keeps it",
    "robust": "the sentence says how many uploads the mean needs",
    "objective.l1 or l2": "its server has no step to which a penalty can be added",
    "compress.up or down": "the sentence says why the method needs them as they are",
}
INTRODUCTION = """
## What does not go together

A study with two of these parts ends before its data are loaded, in one sentence that says what would be right; those
with a star end when the number of clients is known. Plug-ins of your own [add
rows](../extending-reference.md#a-plug-in).
"""
MATRIX = """
## Which tables of a study go together

*yes*: some method runs with both. *no*: none does, for the reason that the number leads to. *Weights* and *penalty*:
`objective.weights`, `objective.l1`; *personal*: `record.personal`; *unseen*: `evaluate.unseen`; *device*: `kernels`.
"""


def lines(
    table: Callable[[Sequence[str], Sequence[Sequence[str]]], list[str]],
    refused: Callable[[Algorithm, Settings], str],
    marked: Callable[[str, str, dict[str, str]], str],
) -> list[str]:
    """The part; ``table`` writes a table of Markdown, ``refused`` says why a method does not go with settings."""
    rows = dict.fromkeys(map(sentence, list_conflicts()))
    reasons: dict[str, str] = {}
    answers = {frozenset(pair): together(*pair, refused) for pair in combinations(TABLES, 2)}
    cells = [
        (one, *("" if one == other else marked(*answers[frozenset((one, other))], reasons) for other in TABLES))
        for one in TABLES
    ]
    notes = [f"- {mark} {reason}." for reason, mark in reasons.items()]
    return [MATRIX, *table(("", *TABLES), cells), "", *notes, INTRODUCTION, *rows]


def together(one: str, other: str, refused: Callable[[Algorithm, Settings], str]) -> tuple[str, str]:
    """Whether some method goes with two parts of a study, yes or no, and why not."""
    both = merge(TABLES[one], TABLES[other])
    if both is None:
        return "no", "a study has one selection"
    reasons = ["", "", ""]  # by how many of the two go with the method alone
    methods = [Algorithm.member(name, "algorithm")() for name in Algorithm.choices]
    for method in (method for method in methods if method.on_graph == ("graph" in (one, other))):
        told = refused(method, both)
        if not told:
            return "yes", ""
        alone = sum(not refused(method, TABLES[part]) for part in (one, other))
        reasons[alone] = reasons[alone] or told
    reason = next(filter(None, reversed(reasons)))
    return "no", shorten(reason)


def merge(one: Settings, other: Settings) -> Settings | None:
    """Both settings, or None where they name two things for one key."""
    merged = dict(one)
    for key, value in other.items():
        if key in one and not (isinstance(value, dict) and isinstance(one[key], dict)):
            return None
        merged[key] = one[key] | value if key in one else value
    return merged


def sentence(row: Conflict) -> str:
    """A row of the table of conflicts as a line of the list."""
    head = " and ".join(f"**{part}**" for part in row.parts) + ("*" if row.at is Moment.DATA else "")
    words = re.sub(
        r"\{([\w.]+)(?:![rsa]|:[^}]*)?\}", lambda word: NOUNS.get(word[1], "…"), row.sentence.replace("{{}}", "…")
    )
    text = shorten(words.partition("; ")[0])
    return f"- {head}: {REASONS.get(row.parts[0], text) if '…' in text else text}."


def shorten(sentence: str) -> str:
    """A refusal without the parts that it is about, which stand in front of it."""
    why = re.sub(r"^.*?(?:is wrong|is missing|cannot be used|and)\b[^:]*: ", "", sentence, count=1)
    return re.sub(r"^.* cannot be used with it, because ", "", why)
