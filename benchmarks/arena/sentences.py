"""The sentences of the page."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.arena import decide
from benchmarks.arena.decide import Decisions, always
from benchmarks.arena.outcome import COUNTED, Case
from benchmarks.arena.regret import Regret, difference, hindsight, regret
from mpifed.report.statistics import BootstrapBand

SCORE_WORDS = {
    "bits": "bits",
    "passes": "passes over the samples",
    "equal": "seconds on equal devices",
    "lognormal": "seconds, log-normal devices",
    "pareto": "seconds, Pareto latencies",
}
FEATURE_WORDS = {
    "bits": "bits",
    "seconds": "passes or seconds",
    "affordable": "affordable",
    "too dear": "not affordable",
    "plain": "no network",
    "network": "network",
    "strong": "strong",
    "weak": "weak",
    "many": "half of them or more",
    "few": "fewer than half",
}
GROUP_WORDS = {
    "plain": "other workloads",
    "absent": "workloads with absent clients",
    "network": "networks",
    "sites": "tables of real sites",
}


class Choices(NamedTuple):
    """What rules of choice cost on held-out workloads: the table, its one method for all, the best in hindsight.

    ``apart``: by how much the table's share of cases within twice the least is above that of its one method.
    """

    table: Regret
    single: Regret
    label: str
    hindsight: Regret
    apart: BootstrapBand


def choices(cases: Sequence[Case], entries: decide.Entries, labels: Sequence[str], decisions: Decisions) -> Choices:
    """The rules of choice in these cases."""
    label = hindsight(cases, labels)
    both = decisions.pick(entries), decisions.single.pick(entries)
    found = [regret(cases, pick) for pick in (*both, always(label))]
    return Choices(found[0], found[1], label, found[2], difference(cases, *both))


def headline(found: Choices, decisions: Decisions, workloads: int, weak: str) -> str:
    """The answer on top of the page, whatever it is; ``weak`` says what the one method is not for."""
    of = f"On {workloads} held-out workloads"
    low, high = (f"{100 * float(edge[0]):+.0f}" for edge in (found.apart.low, found.apart.high))
    interval = f"the difference of the shares within twice the least is {low} to {high} points (95 %)"
    if decisions.rows and found.apart.low[0] > 0:
        first = f"Take the method that the table below names. {of} it {told(found.table)}."
        second = f"One for all, {decisions.words}, {told(found.single)}; {interval}."
    else:
        enough = 2 * found.single.within >= len(found.single.ratios) + found.single.unable
        answer = "One method is enough" if enough else "No method is enough, and no table is better than one"
        first = f"{answer}: {decisions.words}. {of} this {told(found.single)}."
        second = "No feature of the tuning workloads names another."
        if decisions.rows:
            verdict = "is worse" if found.apart.high[0] < 0 else "cannot be told from it"
            second = f"A table by features {verdict}: it {told(found.table)}; {interval}."
        second += f" {weak}"
    last = f"In hindsight {found.label} everywhere {told(found.hindsight)}."
    return " ".join([first, second, *([last] if found.label != decisions.best else [])])


def told(found: Regret) -> str:
    """A regret in words."""
    middle = f"costs {found.middle:.2f} times the least in the median" if found.middle < math.inf else "misses mostly"
    unable = f", and cannot run in {found.unable}" if found.unable else ""
    cases = f"{found.within} of {len(found.ratios) + found.unable} cases"
    return f"{middle}, is within twice the least in {cases}, misses {found.missed or 'none'}{unable}"


def weaknesses(cases: Sequence[Case], entries: decide.Entries, labels: Sequence[str], decisions: Decisions) -> str:
    """Where the one method costs more than twice the least in the median of held-out cases."""
    places: dict[tuple[str, str], list[Case]] = {}
    for one in cases:
        places.setdefault((COUNTED[one.score], entries[one.workload].group), []).append(one)
    parts = []
    for (kind, group), found in places.items():
        own = regret(found, decisions.single.pick(entries))
        if own.middle > 2:
            other = hindsight(found, labels)
            share = f"{other} {regret(found, always(other)).within} of {len(found)}"
            parts.append(f"{FEATURE_WORDS[kind]} on {GROUP_WORDS[group]} (within twice {own.within}, {share})")
    return f"It is not for {'; '.join(parts)}." if parts else "Its median is within twice the least for all of them."
