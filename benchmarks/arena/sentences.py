"""The sentences of the page."""

from benchmarks.arena.decide import Choices, Decisions, Regret

SCORE_WORDS = {
    "bits": "bits",
    "passes": "passes over the samples",
    "equal": "seconds on equal devices",
    "lognormal": "seconds, log-normal devices",
    "pareto": "seconds, Pareto latencies",
}
FEATURE_WORDS = {
    "bits": "bits",
    "seconds": "seconds",
    "affordable": "affordable",
    "too dear": "not affordable",
    "strong": "strong",
    "weak": "weak",
    "many": "half of them or more",
    "few": "fewer than half",
}


def headline(found: Choices, decisions: Decisions, held: int) -> str:
    """The sentence on top of the page, whatever it says."""
    table, best = found.table, found.best
    total = len(table.ratios)
    parts = [
        f"On {held} held-out workloads the method of a table of four features, tuned with {decisions.tries} tries,",
        f"costs {ratio(table)} in the median, at most twice the best method's in {table.within} of {total} cases,",
        f"and misses the goal in {table.missed}. {decisions.best} everywhere, the best on the tuning workloads, costs",
        f"{ratio(best)}, at most twice the best's in {best.within}, and misses in {best.missed}; {verdict(found)}",
        f"In hindsight {found.label} everywhere has the most cases at most twice the best: {found.hindsight.within},",
        f"with a median of {found.hindsight.middle:.2f} and {found.hindsight.missed} misses.",
    ]
    return " ".join(parts)


def verdict(found: Choices) -> str:
    """Whether the table is better than one method, as far as the held-out workloads tell."""
    low, high = found.low, found.high
    if low <= 0 <= high:
        return "so few workloads do not tell these two apart."
    return f"the table is {'better' if low > 0 else 'worse'} by more than drawing other such workloads explains."


def ratio(found: Regret) -> str:
    """The median ratio in words."""
    return f"{found.middle:.2f} times the best method's" if found.middle < float("inf") else "more than counts"
