"""The decision from tuning workloads: for each accuracy a method for all workloads, and one for those that stop it."""

import math
import tomllib
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from benchmarks.arena.outcome import COUNTED, Case, cases, of_accuracy
from benchmarks.arena.plan import HIGH, LOW, file
from benchmarks.arena.scores import MISS, Final, compared
from mpifed import UserError
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array

ENOUGH = 3  # tuning workloads on which the choice of a method rests at least
HEAD = "# Written by python -m benchmarks.arena decide, from runs on tuning workloads alone.\n"

Pick = Callable[[Case], str]  # the method for a case
Losses = dict[tuple[str, str], Array]  # workload, kind of cost -> the mean loss of each method, nan where it cannot run


class Choice(NamedTuple):
    """``best``: the method for all workloads that it can run on, ``last`` for the others.

    ``fewer``: in how many cases of one tuning workload left out which choice is made, in words.
    """

    best: str
    last: str
    fewer: dict[str, int]

    @property
    def words(self) -> str:
        return spelt(self.best, self.last)

    def pick(self, one: Case) -> str:
        """The method for a case."""
        return self.best if self.best in one.costs else self.last


Decisions = Mapping[str, Choice]  # by accuracy


def spelt(best: str, last: str) -> str:
    """A choice in words."""
    return best if last == best else f"{best}, else {last}"


def always(label: str) -> Pick:
    """The choice of one method."""
    return lambda case: label


def losses(found: Sequence[Case], labels: Sequence[str]) -> Losses:
    """The mean logarithm of cost over the least of any method, over all cases of a workload and kind of cost."""
    rows: dict[tuple[str, str], list[list[float]]] = {}
    for one in found:
        rows.setdefault((one.workload, COUNTED[one.score]), []).append([one.loss(label) for label in labels])
    return {key: np.mean(lots, axis=0) for key, lots in rows.items()}


def totals(rows: Sequence[Array], last: int) -> Array:
    """The sum of losses by method, each with method number ``last`` where it cannot run; that may be a miss."""
    found = np.array(rows)
    found = np.where(np.isnan(found), found[:, [last]], found)
    return np.nan_to_num(found, nan=math.log(MISS)).sum(axis=0)


def two(found: Losses, labels: Sequence[str], enough: int = ENOUGH) -> tuple[str, str]:
    """The two methods with the least loss; one where it can run everywhere. UserError for too few workloads."""
    if not found:
        raise UserError("no method reaches a goal of this accuracy on the tuning workloads, so that none can be chosen")
    rows = list(found.values())
    where = np.array([[not math.isnan(loss) for loss in row] for row in rows])
    names = np.array([name for name, _ in found])
    pairs: dict[tuple[int, int], tuple[float, bool]] = {}
    for last in range(len(labels)):
        for best, lost in enumerate(totals(rows, last).tolist()):
            rests = [names[where[:, best]], names[~where[:, best] & where[:, last]]]
            if best == last:
                rests[1] = rests[0]
            if min(len(set(rest)) for rest in rests) >= enough:
                pairs[best, last] = lost, best != last
    if not pairs:
        raise UserError(f"no method runs on {enough} tuning workloads, so that none can be chosen")
    best, last = min(pairs, key=pairs.__getitem__)
    return labels[best], labels[last]


def made(found: Losses, labels: Sequence[str], enough: int = ENOUGH) -> Choice:
    """The choice that tuning workloads give, and those without each of them."""
    names = dict.fromkeys(name for name, _ in found)
    fewer = Counter(
        spelt(*two({key: lost for key, lost in found.items() if key[0] != name}, labels, enough - 1))
        for name in names
        if len(names) > 1  # a single workload has no others
    )
    return Choice(*two(found, labels, enough), dict(fewer.most_common()))


def decided(tuning: Final) -> Decisions:
    """The choices that the costs on tuning workloads give."""
    labels, found = compared(), cases(tuning)
    return {level: made(losses(of_accuracy(found, level), labels), labels) for level in (LOW, HIGH)}


def text(found: Decisions, called: str) -> str:
    """decisions.toml."""
    lines = [HEAD, f"plan = {toml_value(called)}"]
    for level, choice in found.items():
        lines += ["", f"[{level}]", f"best = {toml_value(choice.best)}", f"last = {toml_value(choice.last)}"]
        counts = ", ".join(f"{toml_value(words)} = {count}" for words, count in choice.fewer.items())
        lines.append(f"fewer = {{ {counts} }}")
    return "\n".join([*lines, ""])


def read() -> Decisions:
    """decisions.toml. UserError where it is not there."""
    path = file("decisions.toml")
    if not path.exists():
        raise UserError("decisions.toml is missing: python -m benchmarks.arena decide writes it")
    found = tomllib.loads(path.read_text("utf-8"))
    return {level: Choice(**found[level]) for level in (LOW, HIGH)}
