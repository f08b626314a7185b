"""Checks of data, partitions, selections and graphs: what they say twice, in parts and out of turn."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from mpifed.checking.case import Case
from mpifed.checking.table import Check, Found, Open, place
from mpifed.core.errors import UserError
from mpifed.core.streams import stream
from mpifed.core.typing import Array, Matrix
from mpifed.federation.participation.selection import Selector
from mpifed.graphs.weights import Weights

TIMES = 2000  # rounds in which selections are counted
TURNS = (5, 1, 12, 3)  # rounds that are asked for out of turn
DEVIATIONS = 5.0  # standard deviations that a count may be off


def dense(rows: Matrix) -> Array:
    return rows.toarray() if sp.issparse(rows) else np.asarray(rows)


def samples(case: Case) -> str:
    """Rows are finite, the same when they are read twice, and the same client by client as all together."""
    data: Any = case.component
    one, other = (data.load(case.config.seed, "float64") for _ in range(2))
    X, y = one.rows(0, one.m)
    parts = [other.rows(i, i + 1) for i in range(one.m)]
    apart = [np.concatenate([dense(X) for X, _ in parts]), np.concatenate([y for _, y in parts])]
    for name, whole, single in (("X", dense(X), apart[0]), ("y", np.asarray(y), apart[1])):
        if whole.tobytes() != single.astype(whole.dtype).tobytes():
            raise Found(
                f"{name} of all clients read at once and of each client read alone, from a second load, differ: rows "
                "of a client depend on nothing but the seed and its number",
                place(data, "load"),
            )
        if not np.isfinite(whole).all():
            raise Found(f"{name} has numbers that are not finite", place(data, "load"))
    return f"{len(y)} samples of {one.m} clients, client by client and at once: the same"


def dealt(case: Case) -> str:
    rule: Any = case.component
    y = stream(0, "check").integers(0, 3, 90).astype(float)
    first, second = (rule.split(y, 6, stream(case.config.seed, "check", 1)) for _ in range(2))
    if any(a.tobytes() != b.tobytes() for a, b in zip(first, second, strict=True)):
        raise Found("two deals from the same generator differ: random numbers come from rng", place(rule, "deal"))
    order, sizes = first
    if len(np.unique(order[: sizes.sum()])) < sizes.sum():
        raise Found("a row is dealt twice", place(rule, "deal"))
    return f"{sizes.sum()} of {len(y)} rows to 6 clients, {sizes.min()} to {sizes.max()} each"


def turns(case: Case) -> str:
    """Who is selected in a round does not depend on the rounds that were asked for before."""
    m = case.prepared.setup.m
    last = max(TURNS)
    try:
        selector, fresh = (selectors(case, m, last) for _ in range(2))
    except UserError:  # a recorded selection has the rounds of the study alone
        last = case.config.rounds
        selector, fresh = (selectors(case, m, last) for _ in range(2))
    wanted = [round for round in TURNS if round <= last]
    found = {round: selector.select(round, 0) for round in range(1, last + 1)}
    for round in wanted:
        ids = selected_numbers(found[round], m)
        again = selected_numbers(fresh.select(round, 0), m)
        if ids != again:
            raise Found(
                f"round {round} selects {ids} in turn and {again} out of turn: a run that is resumed would go on with "
                "others",
                place(case.component, "selector"),
            )
    return f"rounds {', '.join(map(str, wanted))} in turn and out of turn: the same"


def selectors(case: Case, m: int, rounds: int) -> Selector:
    """The selector of a run of ``rounds`` rounds; Open for one that learns from the clients first."""
    rule: Any = case.component
    found: Selector = rule.selector(case.config.seed, m, rounds)
    if found.learn is not None:
        raise Open("the clients tell it its odds when a run begins")
    return found


def selected_numbers(ids: Array | None, m: int) -> list[int]:
    """The numbers of selected clients."""
    return list(range(m)) if ids is None else np.sort(np.asarray(ids)).tolist()


def odds(case: Case) -> str:
    """How often each client is selected, against ``weights``, which are 1/(m p_i)."""
    m = case.prepared.setup.m
    selector = selectors(case, m, case.config.rounds)
    if selector.weights is None:
        raise Open("its selector has no weights")
    counts = np.zeros(m)
    for round in range(1, TIMES + 1):
        counts[selected_numbers(selector.select(round, 0), m)] += 1
    p = selector.size / (m * selector.weights)
    off = np.abs(counts / TIMES - p) - DEVIATIONS * np.sqrt(p * np.clip(1 - p, 0, 1) / TIMES)
    i = int(off.argmax())
    if off[i] > 1e-3:
        raise Found(
            f"client {i} is selected in {counts[i] / TIMES:.3g} of {TIMES} rounds, and weights say {p[i]:.3g}",
            place(case.component, "selector"),
        )
    return f"in {TIMES} rounds each client is selected as often as weights say"


def weights(case: Case) -> str:
    """W follows from the seed alone, and is connected."""
    seed = case.config.seed
    m = case.prepared.setup.m
    graph: Any = case.component
    first, second = (Weights(graph, seed, m) for _ in range(2))
    for round in (1, 2):
        one, other = (found.at(round) for found in (first, second))
        if not np.array_equal(one.degrees, other.degrees) or one.edges != other.edges:
            raise Found("two graphs with the same seed differ: random numbers come from rng", place(graph, "edges"))
    # graphs that change each round need be connected only over time
    gap = first.spectrum.gap
    if not gap > 1e-9 and not graph.changing:
        raise Found(f"W has the spectral gap {gap:.2g}: the graph is not connected", place(graph, "edges"))
    return f"{first.at(1).edges} edges, spectral gap {gap:.3g}"


CHECKS: dict[str, list[Check]] = {
    "data": [("samples", samples)],
    "partitions": [("parts", dealt)],
    "selections": [("rounds out of turn", turns), ("odds", odds)],
    "graphs": [("weights", weights)],
}
