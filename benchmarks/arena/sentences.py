"""The sentences of the page."""

from collections.abc import Sequence

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


def headline(found: Choices, decisions: Decisions, held: int, tries: int) -> str:
    """The sentence on top of the page, whatever it says; methods were tuned with so many ``tries``."""
    table, best = found.table, found.best
    total = len(table.ratios)
    parts = [
        f"On {held} held-out workloads the method of a table of four features, tuned with {tries} tries,",
        f"costs {ratio(table)} in the median, at most twice the best method's in {table.within} of {total} cases,",
        f"and misses the goal in {table.missed}. {decisions.best} everywhere, the best on the tuning workloads, costs",
        f"{ratio(best)}, at most twice the best's in {best.within}, and misses in {best.missed}; {verdict(found)}",
        f"In hindsight {found.label} everywhere has the most cases at most twice the best: {found.hindsight.within},",
        f"with a median of {found.hindsight.middle:.2f} and {found.hindsight.missed} misses.",
    ]
    return " ".join(parts)


def left_out(dropped: Sequence[str], done: int) -> str:
    """What the plan "committed" leaves out of "full", and how that came."""
    return (
        f"By the rule of rules.toml, from 20 tries, 10 seeds and {done + len(dropped)} methods; dropped methods: "
        f"{', '.join(dropped)}. The budget of rounds, the order of\n"
        "methods and the steps 3 and 4 of that rule were set when runs of the references had been timed, before any "
        f"method was tuned; the time was over after {done} methods.\n"
    )


def added(seeds: range, before: str, after: str) -> str:
    """That these final seeds were added; ``before`` and ``after`` say what comes out without and with them alone."""
    first, last = seeds[0], seeds[-1]
    return (
        f"Seeds {first} to {last}, which that rule had dropped, were added when a page of seeds 0 to {first - 1} "
        "had been written ([later.toml](../../benchmarks/arena/later.toml)):\n"
        "settings, goals and the table of decisions are those committed before. Held-out cases at most twice the best, "
        f"with seeds 0 to {first - 1} alone: {before};\nwith seeds {first} to {last} alone: {after}. "
        "The median of an even number of seeds is the larger of the middle two.\n"
    )


def verdict(found: Choices) -> str:
    """Whether the table is better than one method, as far as the held-out workloads tell."""
    low, high = found.low, found.high
    if low <= 0 <= high:
        return "so few workloads do not tell these two apart."
    return f"the table is {'better' if low > 0 else 'worse'} by more than drawing other such workloads explains."


def ratio(found: Regret) -> str:
    """The median ratio in words."""
    return f"{found.middle:.2f} times the best method's" if found.middle < float("inf") else "more than counts"
