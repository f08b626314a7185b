"""Settings for every method: what it runs on, who trains or which graph, how many hosts, which feature and precision.

The default tests run covering sets of them, in which every pair of values occurs; the slow ones run them all.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import combinations, product

from mpifed.data.sources.linreg_noniid import LinregNoniid
from mpifed.data.sources.synthetic import Synthetic
from mpifed.federation.participation.selection import All, Biased, Cover, UniformSelection
from mpifed.problems.least_squares import LeastSquares
from mpifed.problems.logistic import Logistic
from mpifed.problems.softmax import Softmax
from tests.helpers import traits
from tests.helpers.algorithm_cases import CASES, GRAPH_CASES, GRAPHED, LOSSY, SERVED
from tests.helpers.algorithm_runs import SHARE, M, N, Run, build

Value = tuple[str, str]  # a factor and one of its values
Row = dict[str, str]  # a value of each factor

UNEVEN = {"clients": M, "least": 6, "most": 25}
PROBLEMS = {
    "least-squares": (LeastSquares(), LinregNoniid(features=N, **UNEVEN)),
    "logistic": (Logistic(mu=0.1, regulariser="whole"), Synthetic(features=N, classes=2, test=0.0, **UNEVEN)),
    "softmax": (Softmax(lam=0.1, bias=False), Synthetic(features=3, classes=3, test=0.0, **UNEVEN)),
}
SELECTIONS = {
    "uniform": UniformSelection(share=SHARE),
    "all": All(),
    "cover": Cover(share=0.3),
    "biased": Biased(count=5, candidates=9, batch_size=4),
}
GRAPHS = {
    "ring": {"name": "ring"},
    "star": {"name": "star"},
    "lossy": LOSSY,
    "redrawn": {"name": "erdos-renyi", "p": 0.3, "redraw": True},
}
CUTS = {"2 hosts": (0, 6, M), "4 hosts": (0, 1, 2, 11, M), "12 hosts": tuple(range(M + 1))}
SLOW = {"speed": {"name": "lognormal", "median": 200, "sigma": 1.0}, "passes": 2}
FEATURES = {
    "plain": {},
    "small blocks": {"block_bytes": 1},
    "compressed": {"compress": {"up": "natural", "down": {"name": "topk", "k": 5}}},
    "unreliable": {"system": {**SLOW, "dropout": 0.2, "deadline": 1.0, "jitter": 0.3}},
    "asynchronous": {"system": SLOW, "asynchronous": {"arrivals": 4, "staleness": 3}},
    "timed": {"system": {**SLOW, "jitter": 0.3}},
}
TYPES = ["float64", "float32"]
WITH_SERVER = {
    "method": SERVED,
    "problem": list(PROBLEMS),
    "selection": list(SELECTIONS),
    "hosts": list(CUTS),
    "feature": [name for name in FEATURES if name != "timed"],
    "dtype": TYPES,
}
ON_GRAPHS = {
    "method": GRAPHED,
    "problem": ["least-squares", "logistic"],
    "graph": list(GRAPHS),
    "hosts": list(CUTS),
    "feature": ["plain", "small blocks", "timed"],
    "dtype": TYPES,
}
OPTIONS = [(name, options) for name, options, *_ in [*CASES, *GRAPH_CASES]]


@cache
def cases(name, problem):
    """The cases of a method that a problem is enough for."""
    every = [build(*case) for case in OPTIONS if case[0] == name]
    return [algorithm for algorithm in every if not traits.missing_methods(algorithm, type(PROBLEMS[problem][0]))]


def forbidden(one, other):
    """Whether two values, as (factor, value), do not go together."""
    row = dict([one, other])
    if row.get("feature") == "asynchronous" and "selection" in row:
        return row["selection"] != "uniform"  # arrivals select
    if "method" not in row:
        return False
    name, algorithm = row["method"], cases(row["method"], "logistic")[0]
    refused = {
        "compressed": bool(algorithm.upload.exact),
        "unreliable": not traits.bears_absence(algorithm),
        "asynchronous": not traits.can_be_asynchronous(name),
        "lossy": not traits.bears_change(name),
        "redrawn": not traits.bears_change(name),
    }
    if "problem" in row:
        return not cases(name, row["problem"])
    return refused.get(row.get("feature", row.get("graph")), False)


def rows(choose, factors):
    """Rows of ``covering`` or ``every_row``, each with the case of its method that was least often used."""
    used = Counter()
    for row in choose(factors, forbidden):
        algorithm = min(cases(row["method"], row["problem"]), key=used.__getitem__)
        used[algorithm] += 1
        yield algorithm, row


def started(algorithm, row, together=False):
    """The algorithm on one host or, ``together``, on the hosts of the row, whose blocks are never small."""
    problem, source = PROBLEMS[row["problem"]]
    where = {"graph": GRAPHS[row["graph"]]} if "graph" in row else {"selection": SELECTIONS[row["selection"]]}
    cuts = CUTS[row["hosts"]] if together else None
    data = source.load(0, row["dtype"])
    more = {} if together and row["feature"] == "small blocks" else FEATURES[row["feature"]]
    return Run(algorithm, problem, dtype=row["dtype"], data=data, cuts=cuts, **where, **more)


def pairs(row: Row) -> Iterator[tuple[Value, Value]]:
    """The pairs of values in a row, in the order of its factors."""
    return combinations(row.items(), 2)


def every_row(factors: dict[str, Sequence[str]], forbidden: Callable[[Value, Value], bool]) -> Iterator[Row]:
    """The product of all values, without the rows in which two values do not go together."""
    for values in product(*factors.values()):
        row = dict(zip(factors, values, strict=True))
        if not any(forbidden(*pair) for pair in pairs(row)):
            yield row


def covering(factors: dict[str, Sequence[str]], forbidden: Callable[[Value, Value], bool]) -> list[Row]:
    """Rows in which every pair of values of two factors occurs, without pairs that are ``forbidden``.

    A row begins with the first pair that has not occurred. Every other factor then takes the value with which most
    pairs occur for the first time. ValueError where no value of a factor goes with the others.
    """
    values = [[(name, value) for value in factors[name]] for name in factors]
    every = (pair for one, other in combinations(values, 2) for pair in product(one, other))
    left = dict.fromkeys(pair for pair in every if not forbidden(*pair))
    rows = []
    while left:
        row = dict(next(iter(left)))
        for name in factors:
            if name not in row:
                row[name] = best(name, factors[name], row, left, forbidden)
        row = {name: row[name] for name in factors}
        for pair in pairs(row):
            left.pop(pair, None)
        rows.append(row)
    return rows


def best(name, values, row, left, forbidden):
    """The value of a factor that goes with a row begun and brings most of the pairs that are ``left``."""
    new = {}
    for value in values:
        one = (name, value)
        if not any(forbidden(one, other) or forbidden(other, one) for other in row.items()):
            new[value] = sum((one, other) in left or (other, one) in left for other in row.items())
    if not new:
        raise ValueError(f"no {name} goes with {row}")
    return max(new, key=new.__getitem__)
