"""The page "what goes with what": methods × the tables of an experiment, from the conflicts that a run asks too."""

from __future__ import annotations

import re
import runpy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.algorithms.bases.graph_algorithm import GraphAlgorithm
from mpifed.core.errors import UserError
from mpifed.data.pool import Pool
from mpifed.engine.listed import refuse_study
from mpifed.experiment.config import experiment
from mpifed.features.conflict import LoadedSettings, Moment
from mpifed.features.matching import missing_methods
from mpifed.problems.problem import Problem

FIELD = runpy.run_path(str(Path(__file__).parent / "field.py"))
M = 8  # clients
DATA = Pool(np.ones((M, 1)), np.zeros(M), None, np.ones(M, int))
SLOW = {"speed": 1.0, "passes": 1.0}
COLUMNS: dict[str, list[dict[str, Any]]] = {  # what stands in a column -> settings; one of them is enough
    "`uniform`, `cover`": [{"selection": {"share": 0.3}}],
    "`poisson`": [{"selection": {"name": "poisson", "share": 0.3}}],
    "`cyclic`": [{"selection": {"name": "cyclic"}}, {"selection": {"name": "cyclic", "overlap": 1}}],
    "`importance`": [{"selection": "importance"}],
    "`biased`, `power-of-choice`": [{"selection": {"name": "biased", "batch_size": 0}}],
    "`greedy`": [{"selection": "greedy"}],
    "`[asynchronous]`": [{"system": SLOW, "asynchronous": {"arrivals": k}} for k in (1, 2)],
    "`[graph]`": [{"graph": "ring"}, {"graph": {"name": "ring", "loss": 0.1}}],
    "`compress.up`": [{"compress": {"up": "natural"}}],
    "`compress.down`": [{"compress": {"down": "natural"}}],
    "`[masks]`": [{"masks": {}}],
    "`objective.l1`": [{"objective": {"l1": 0.1}}],
    "absent clients": [{"system": {"dropout": 0.1}}],
    "partial work": [{"system": SLOW | {"deadline": 1.0, "partial": True}}],
}
PRIVACY = "privacy"

INTRODUCTION = """# What goes with what

Which method goes with which selection and which table of the experiment file, with default options; a row of its own
has a method with the option that makes its uploads private. `python docs/build.py` asks for each pair [the table of
conflicts](../../mpifed/features/conflicts.py) that a run asks before its data are loaded. A number leads to the reason,
or with *yes* to the condition. *Absent clients*: `system.dropout` or `system.deadline`; *partial
work*: `system.partial`; *privacy*: uploads that are guaranteed to be private. More: [selection](../selection.md), [slow
and absent clients](../clients.md), [asynchronous runs](../asynchronous.md), [graphs](../graphs.md),
[compression](../compression.md), [masks](../masks.md), [privacy](../privacy.md).
"""


def lines(table: Callable[[Sequence[str], Sequence[Sequence[str]]], list[str]]) -> list[str]:
    """The page; ``table`` writes a table of Markdown."""
    reasons: dict[str, str] = {}  # reason -> its mark
    rows = []
    for name in Algorithm.choices:
        for method in (Algorithm.member(name, "algorithm")(), *private(name)):
            answers = [*(answer(method, ways) for ways in COLUMNS.values()), privacy(method)]
            rows.append((row_head(method), *(marked(word, reason, reasons) for word, reason in answers)))
    notes = [f"- {mark} {reason}." for reason, mark in reasons.items()]
    return [INTRODUCTION, *table(("", *COLUMNS, PRIVACY), rows), "", *notes]


def private(name: str) -> list[Algorithm]:
    """A method with the options that alone make its uploads private, where its default options do not."""
    cls = Algorithm.member(name, "algorithm")
    found = [cls(**{key: value}) for key, kind in FIELD["literals"](cls).items() for value in kind.__args__]
    return [] if guaranteed(cls()) else [method for method in found if guaranteed(method)]


def guaranteed(method: Algorithm) -> bool:
    """Whether uploads are private."""
    claim = method.privacy()
    return claim is not None and claim.holds


def row_head(method: Algorithm) -> str:
    """The name of a method, and its option."""
    name = method.label()
    usual = type(method)()
    own = {key: getattr(method, key) for key in FIELD["literals"](type(method))}
    changed = [f'`{key} = "{value}"`' for key, value in own.items() if value != getattr(usual, key)]
    return ", ".join([f"[`{name}`](algorithms/{name}.md)", *changed])


def answer(method: Algorithm, ways: Sequence[dict[str, Any]]) -> tuple[str, str]:
    """Whether a method goes with one of several settings, yes or no, and why the first of them is not enough."""
    found = [refused(method, settings) for settings in ways]
    if all(found):
        return "no", found[0].partition(": ")[2]  # what is wrong stands above the column
    return "yes", next(filter(None, found), "")


def refused(method: Algorithm, settings: dict[str, Any]) -> str:
    """Why a method does not go with settings; empty where it does."""
    problem = next(name for name in Problem.choices if not missing_methods(method, Problem.member(name, "problem")))
    base = {"selection": "all", "problem": problem, "graph": "ring" if isinstance(method, GraphAlgorithm) else None}
    table = {key: value for key, value in (base | settings).items() if value is not None}
    own = {key: value for key, value in msgspec.to_builtins(method).items() if value is not None}
    try:
        config = experiment(table | {"algorithm": own})
        refuse_study(config)
        refuse_study(LoadedSettings(config, config.selection.selector(0, M, 1), M, DATA), Moment.DATA)
    except UserError as error:
        return told(str(error), method.label())
    return ""


def told(sentence: str, name: str) -> str:
    """A refusal without what else would be right, and without the name of the method."""
    return re.sub(rf"(?<![\w-]){name}(?![\w-])", "the method", sentence.partition("; ")[0])


def privacy(method: Algorithm) -> tuple[str, str]:
    """Whether uploads are private, and what is said where they are not."""
    claim = method.privacy()
    if claim is None:
        return "no", "the method makes no claim about privacy"
    return ("yes", "") if claim.holds else ("no", claim.text)


def marked(word: str, reason: str, reasons: dict[str, str]) -> str:
    """An answer with the mark of its reason."""
    if not reason:
        return word
    digits = str(len(reasons) + 1).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return word + reasons.setdefault(reason, digits)
