"""The table of decisions: which method for which features, from tuning workloads."""

import math
import tomllib
from collections.abc import Callable, Container, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from benchmarks.arena.outcome import COUNTED, Case, Entry, cases, outcome
from benchmarks.arena.plan import file, rules
from benchmarks.arena.scores import MISS, Final
from mpifed import UserError
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array

FEATURES = ("counted", "curvature", "model", "skew", "share")
ENOUGH = 2  # tuning workloads that a row of the table rests on at least
MANY = 0.5  # share of clients a round from which on many take part
ANY = ""  # for a feature that may be whatever it is
HEAD = "# Written by python -m benchmarks.arena decide, from runs on tuning workloads alone.\n"

Features = tuple[str, ...]  # in the order of FEATURES
Entries = Mapping[str, Entry]
Pick = Callable[[Case], str]  # the method for a workload and score
Losses = dict[tuple[str, str], Array]  # workload, kind of cost -> the mean loss of each method, nan where it cannot run


class Decisions(NamedTuple):
    """``plan``: whose; ``skew``: the median of the tuning workloads'; ``used``: the features that decide.

    ``best``: the method for all workloads that it can run on, ``last`` for the others; ``rows``: features -> method.
    """

    plan: str
    skew: float
    best: str
    last: str
    used: list[str]
    rows: dict[Features, str]

    def method(self, features: Features, able: Container[str]) -> str:
        """The method for a workload: of the row with most of its features whose method can run."""
        fitting = [
            cell for cell in self.rows if all(word in (ANY, own) for word, own in zip(cell, features, strict=True))
        ]
        found = [self.rows[cell] for cell in sorted(fitting, key=width, reverse=True)]
        return next((label for label in [*found, self.best] if label in able), self.last)

    def pick(self, entries: Entries) -> Pick:
        """The choice of the table."""
        return lambda one: self.method(features(entries[one.workload], COUNTED[one.score], self.skew), one.costs)

    @property
    def single(self) -> "Decisions":
        """The one method for all, and the last one."""
        return self._replace(rows={})

    @property
    def words(self) -> str:
        """The one method in words."""
        return self.best if self.last == self.best else f"{self.best}, and {self.last} where that cannot run"


def width(cell: Features) -> int:
    """How many features a row asks for."""
    return sum(word != ANY for word in cell)


def always(label: str) -> Pick:
    """The choice of one method, whatever the features."""
    return lambda case: label


def features(seen: Entry, counted: str, skew: float) -> Features:
    """What a user can see before the first round."""
    affordable = seen.n <= rules().curvature.most and seen.curved
    return (
        counted,
        "affordable" if affordable else "too dear",
        "plain" if seen.curved else "network",
        "strong" if seen.skew > skew else "weak",
        "many" if seen.share >= MANY else "few",
    )


def losses(cases: Sequence[Case], labels: Sequence[str]) -> Losses:
    """The mean logarithm of cost over the least of any method, over all cases of a workload and kind of cost."""
    found: dict[tuple[str, str], list[list[float]]] = {}
    for one in cases:
        row = [one.loss(label) for label in labels]
        found.setdefault((one.workload, COUNTED[one.score]), []).append(row)
    return {key: np.mean(rows, axis=0) for key, rows in found.items()}


def totals(rows: Sequence[Array], last: int) -> Array:
    """The sum of losses by method, each with method number ``last`` where it cannot run; that may be a miss."""
    found = np.array(rows)
    found = np.where(np.isnan(found), found[:, [last]], found)
    return np.nan_to_num(found, nan=math.log(MISS)).sum(axis=0)


class Evidence(NamedTuple):
    """What a table is made from: losses, and the features of the same workloads and kinds of cost."""

    losses: Losses
    seen: dict[tuple[str, str], Features]
    labels: Sequence[str]

    def without(self, name: str) -> "Evidence":
        return self._replace(losses={key: of for key, of in self.losses.items() if key[0] != name})


def singles(known: Evidence) -> tuple[int, int]:
    """The two methods, for all and where that cannot run, with the least loss; one where it can run everywhere."""
    pairs = {}
    for last in range(len(known.labels)):
        for best, lost in enumerate(totals(list(known.losses.values()), last).tolist()):
            pairs[best, last] = lost, best != last
    return min(pairs, key=pairs.__getitem__)


def rows(known: Evidence, used: list[str], last: int, enough: int = ENOUGH) -> dict[Features, str]:
    """The method with the least loss for workloads with the same first features of those ``used``."""
    cells: dict[Features, list[tuple[str, str]]] = {}
    for key in known.losses:
        for length in range(1, len(used) + 1):
            wanted = used[:length]
            cell = tuple(word if own in wanted else ANY for word, own in zip(known.seen[key], FEATURES, strict=True))
            cells.setdefault(cell, []).append(key)
    return {
        cell: known.labels[int(np.argmin(totals([known.losses[key] for key in keys], last)))]
        for cell, keys in sorted(cells.items(), key=lambda one: width(one[0]))
        if len({name for name, _ in keys}) >= enough
    }


def left_out(known: Evidence, used: list[str], single: dict[str, tuple[int, int]]) -> float:
    """The loss of tables where each workload in turn is decided by the others; ``single``: their two methods."""
    total = 0.0
    for name, (best, last) in single.items():
        found = rows(known.without(name), used, last, ENOUGH - 1)
        table = Decisions("", 0.0, known.labels[best], known.labels[last], used, found)
        for key in [key for key in known.losses if key[0] == name]:
            lost = dict(zip(known.labels, known.losses[key].tolist(), strict=True))
            able = {label: loss for label, loss in lost.items() if not math.isnan(loss)}
            total += able.get(table.method(known.seen[key], able), math.log(MISS))
    return total


def made(found: Losses, entries: Entries, labels: Sequence[str]) -> Decisions:
    """The table that tuning workloads give, with the features that lose least where one workload is left out."""
    names = dict.fromkeys(name for name, _ in found)
    skew = float(np.median([entries[name].skew for name in names]))
    known = Evidence(found, {key: features(entries[key[0]], key[1], skew) for key in found}, labels)
    # A single workload has no others that could decide it.
    single = {name: singles(known.without(name)) for name in names if len(names) > 1}
    sets = [list(used) for count in range(len(FEATURES) + 1) for used in combinations(FEATURES, count)]
    # Of sets that lose the same the first has the fewest features.
    used = min(sets, key=lambda one: round(left_out(known, one, single), 9))
    best, last = singles(known)
    return needless(Decisions("", skew, labels[best], labels[last], used, rows(known, used, last)), labels)


def decided(tuning: Final, called: str) -> Decisions:
    """The table that the costs of a plan on its tuning workloads give."""
    of = outcome(tuning, {})
    return made(losses(cases(tuning), of.labels), of.entries, of.labels)._replace(plan=called)


def needless(decisions: Decisions, labels: Sequence[str]) -> Decisions:
    """The same without rows that say what a shorter row says."""
    rows: dict[Features, str] = {}
    for cell in sorted(decisions.rows, key=width):
        if decisions._replace(rows=rows).method(cell, labels) != decisions.rows[cell]:
            rows[cell] = decisions.rows[cell]
    return decisions._replace(rows=rows)


def text(found: Decisions) -> str:
    """decisions.toml."""
    lines = [f"{key} = {toml_value(value)}" for key, value in found._asdict().items() if key != "rows"]
    for cell, method in found.rows.items():
        known = {key: word for key, word in zip(FEATURES, cell, strict=True) if word != ANY}
        lines += ["", "[[row]]", *(f"{key} = {toml_value(word)}" for key, word in known.items())]
        lines.append(f"method = {toml_value(method)}")
    return HEAD + "\n".join(["", *lines, ""])


def read() -> Decisions:
    """decisions.toml. UserError where it is not there."""
    path = file("decisions.toml")
    if not path.exists():
        raise UserError("decisions.toml is missing: python -m benchmarks.arena decide writes it")
    found = tomllib.loads(path.read_text("utf-8"))
    rows = {tuple(row.get(key, ANY) for key in FEATURES): row["method"] for row in found.pop("row", [])}
    return Decisions(**found, rows=rows)
