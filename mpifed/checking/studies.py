"""Checks of data, partitions, selections and graphs: their results repeated, in parts and out of turn."""

from typing import Any

import numpy as np
import scipy.sparse as sp

from mpifed.checking.case import Case
from mpifed.checking.table import Check, CheckFailure, Inconclusive, locate
from mpifed.core.errors import UserError
from mpifed.core.streams import stream
from mpifed.core.typing import Array, SampleMatrix
from mpifed.federation.participation.selection import Selector
from mpifed.graphs.weights import Weights

TRIALS = 2000  # rounds in which selections are counted
TURNS = (5, 1, 12, 3)  # rounds requested out of turn
DEVIATIONS = 5.0  # allowed error of a count, in standard deviations


def dense(rows: SampleMatrix) -> Array:
    return rows.toarray() if sp.issparse(rows) else np.asarray(rows)


def check_samples(case: Case) -> str:
    """Test that rows are finite, equal when read twice, and equal client by client and all together."""
    data: Any = case.component
    one, other = (data.load(case.config.seed, "float64") for _ in range(2))
    X, y = one.rows(0, one.m)
    parts = [other.rows(i, i + 1) for i in range(one.m)]
    joined = [np.concatenate([dense(X) for X, _ in parts]), np.concatenate([y for _, y in parts])]
    for name, full, single in (("X", dense(X), joined[0]), ("y", np.asarray(y), joined[1])):
        if full.tobytes() != single.astype(full.dtype).tobytes():
            raise CheckFailure(
                f"{name} of all clients read at once and of each client read alone, from a second load, differ: rows "
                "of a client depend on nothing but the seed and its number",
                locate(data, "load"),
            )
        if not np.isfinite(full).all():
            raise CheckFailure(f"{name} has numbers that are not finite", locate(data, "load"))
    return f"{len(y)} samples of {one.m} clients, client by client and at once: the same"


def check_partition(case: Case) -> str:
    """Test that a partition repeats itself with the same generator, and uses no row twice."""
    rule: Any = case.component
    y = stream(0, "check").integers(0, 3, 90).astype(float)
    first, second = (rule.split(y, 6, stream(case.config.seed, "check", 1)) for _ in range(2))
    if any(a.tobytes() != b.tobytes() for a, b in zip(first, second, strict=True)):
        raise CheckFailure(
            "two deals from the same generator differ: random numbers come from rng", locate(rule, "deal")
        )
    order, sizes = first
    if len(np.unique(order[: sizes.sum()])) < sizes.sum():
        raise CheckFailure("a row is dealt twice", locate(rule, "deal"))
    return f"{sizes.sum()} of {len(y)} rows to 6 clients, {sizes.min()} to {sizes.max()} each"


def check_out_of_turn(case: Case) -> str:
    """Test that the selection of a round does not depend on the rounds requested before."""
    m = case.spec.setup.m
    last = max(TURNS)
    try:
        selector, fresh = (selector_of_run(case, m, last) for _ in range(2))
    except UserError:  # a recorded selection has only the rounds of the study
        last = case.config.rounds
        selector, fresh = (selector_of_run(case, m, last) for _ in range(2))
    requested = [round for round in TURNS if round <= last]
    selections = {round: selector.select(round, 0) for round in range(1, last + 1)}
    for round in requested:
        ids = selected_numbers(selections[round], m)
        alone = selected_numbers(fresh.select(round, 0), m)
        if ids != alone:
            raise CheckFailure(
                f"round {round} selects {ids} in turn and {alone} out of turn: a run that is resumed would go on with "
                "others",
                locate(case.component, "selector"),
            )
    return f"rounds {', '.join(map(str, requested))} in turn and out of turn: the same"


def selector_of_run(case: Case, m: int, rounds: int) -> Selector:
    """Return the selector of a run of ``rounds`` rounds; Inconclusive for one that learns from the clients first."""
    rule: Any = case.component
    selector: Selector = rule.selector(case.config.seed, m, rounds)
    if selector.learn is not None:
        raise Inconclusive("the clients tell it its odds when a run begins")
    return selector


def selected_numbers(ids: Array | None, m: int) -> list[int]:
    """Return the numbers of selected clients."""
    return list(range(m)) if ids is None else np.sort(np.asarray(ids)).tolist()


def check_odds(case: Case) -> str:
    """Compare how often each client is selected with ``weights``, which are 1/(m p_i)."""
    m = case.spec.setup.m
    selector = selector_of_run(case, m, case.config.rounds)
    if selector.weights is None:
        raise Inconclusive("its selector has no weights")
    counts = np.zeros(m)
    for round in range(1, TRIALS + 1):
        counts[selected_numbers(selector.select(round, 0), m)] += 1
    p = selector.size / (m * selector.weights)
    excess = np.abs(counts / TRIALS - p) - DEVIATIONS * np.sqrt(p * np.clip(1 - p, 0, 1) / TRIALS)
    i = int(excess.argmax())
    if excess[i] > 1e-3:
        raise CheckFailure(
            f"client {i} is selected in {counts[i] / TRIALS:.3g} of {TRIALS} rounds, and weights say {p[i]:.3g}",
            locate(case.component, "selector"),
        )
    return f"in {TRIALS} rounds each client is selected as often as weights say"


def check_graph(case: Case) -> str:
    """Test that W follows from the seed alone, and that its graph is connected."""
    seed = case.config.seed
    m = case.spec.setup.m
    graph: Any = case.component
    first, second = (Weights(graph, seed, m) for _ in range(2))
    for round in (1, 2):
        one, other = (graph_weights.at(round) for graph_weights in (first, second))
        if not np.array_equal(one.degrees, other.degrees) or one.edges != other.edges:
            raise CheckFailure(
                "two graphs with the same seed differ: random numbers come from rng", locate(graph, "edges")
            )
    # graphs that change each round need to be connected only over time
    gap = first.spectrum.gap
    if not gap > 1e-9 and not graph.is_changing:
        raise CheckFailure(f"W has the spectral gap {gap:.2g}: the graph is not connected", locate(graph, "edges"))
    return f"{first.at(1).edges} edges, spectral gap {gap:.3g}"


CHECKS: dict[str, list[Check]] = {
    "data": [("samples", check_samples)],
    "partitions": [("parts", check_partition)],
    "selections": [("rounds out of turn", check_out_of_turn), ("odds", check_odds)],
    "graphs": [("weights", check_graph)],
}
