"""The sentences of the page."""

from benchmarks.arena.decide import Decisions, Regret

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


def headline(table: Regret, best: Regret, decisions: Decisions, held: int) -> str:
    """The sentence on top of the page, whatever it says."""
    total = len(table.ratios)
    parts = [
        f"On {held} held-out workloads the method of a table of four features, tuned with {decisions.tries} tries,",
        f"costs {ratio(table)} in the median, at most twice the best method's in {table.within} of {total} cases,",
        f"and misses the goal in {table.missed}; {decisions.best} everywhere costs {ratio(best)},",
        f"at most twice the best's in {best.within}, and misses in {best.missed}.",
    ]
    first = " ".join(parts)
    if table.ratios == best.ratios:
        return f"{first} The table chose no other method there."
    mine, other = (table.within, -table.missed), (best.within, -best.missed)
    if mine > other:
        return f"{first} So the table was better than one method for everything."
    return f"{first} So the table was {'worse than' if mine < other else 'as good as'} one method for everything."


def ratio(found: Regret) -> str:
    """The median ratio in words."""
    return f"{found.middle:.2f} times the best method's" if found.middle < float("inf") else "more than counts"
