"""Checks of all families but methods and problems: components on random rows, and what a study draws, dealt twice."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import scipy.sparse as sp

from mpifed.checking.case import Case
from mpifed.checking.table import Check, CheckFailure, Inconclusive
from mpifed.core.errors import UserError
from mpifed.core.streams import stream, streams
from mpifed.core.typing import Array, SampleMatrix
from mpifed.federation.local import Local
from mpifed.federation.participation.selection import Selector
from mpifed.graphs.weights import Weights

DRAWS = 2000  # messages of a vector whose mean and mean error are compared with the bounds of a compressor
DEVIATIONS = 5.0  # allowed error of a mean or a count, in standard deviations
ORDER = 6  # of packed matrices, for compressors of matrices
C, N = 5, 21  # rows and columns of random arrays; N is also a packed matrix of order ORDER
UPLOADS = 11  # rows of a mean
TRIALS = 2000  # rounds in which selections are counted
TURNS = (5, 1, 12, 3)  # rounds requested out of turn


def random_rows(case: Case) -> Array:
    """Return random rows (C, N), with entries of many sizes."""
    rng = stream(case.config.seed, "check")
    return rng.standard_normal((C, N)) * np.exp(2 * rng.standard_normal((C, N)))


def test_vectors(case: Case) -> dict[str, Array]:
    """Return vectors (N,) of several kinds, by name."""
    rng = stream(case.config.seed, "check", 1)
    return {
        "a Gaussian vector": rng.standard_normal(N),
        "a vector with entries of many sizes": random_rows(case)[0],
        "a vector of ones": np.ones(N),
        "a vector with one entry": np.eye(1, N, 3)[0],
    }


def squared_norms(rows: Array, symmetric: bool) -> Array:
    """Return the squared norms of rows; for packed matrices, of the Frobenius norm."""
    weights = np.ones(N)
    if symmetric:
        weights += np.concatenate([np.arange(k) > 0 for k in range(ORDER, 0, -1)])
    return np.vecdot(rows * rows, weights)


def sample_messages(case: Case, x: Array, symmetric: bool) -> Array:
    """Return messages C(x) of one vector, each with its own draws: (DRAWS, N)."""
    compressor: Any = case.component
    draws = streams(case.config.seed, "check", np.arange(DRAWS), 2)
    return compressor.message(np.broadcast_to(x, (DRAWS, N)).copy(), lambda: draws, symmetric)


def check_errors(case: Case) -> str:
    """Compare δ and ω with the mean error of sampled messages, and E C(x) with x where there is an ω."""
    compressor: Any = case.component
    symmetric = is_symmetric(case)
    delta, omega = (getattr(compressor, name)(N, symmetric) for name in ("delta", "omega"))
    if delta is None and omega is None:
        raise Inconclusive("it has neither δ nor ω")
    bound, name = (1 - delta, "delta") if delta is not None else (omega, "omega")
    largest = 0.0
    for label, x in test_vectors(case).items():
        draws = sample_messages(case, x, symmetric)
        ratio = squared_norms(draws - x, symmetric) / squared_norms(x, symmetric)
        largest = max(largest, float(ratio.mean()))
        # single draws may exceed the bound, their mean may not: fail only where the mean exceeds it for certain
        for limit, what in ((None if delta is None else 1 - delta, "delta"), (omega, "omega")):
            if limit is not None and ratio.mean() - DEVIATIONS * ratio.std() / np.sqrt(DRAWS) > limit + 1e-9:
                raise CheckFailure(
                    f"E‖C(x) − x‖² is {ratio.mean():.4g}·‖x‖² for {label}, and {what} says at most {limit:.4g}", what
                )
        slack = DEVIATIONS**2 / DRAWS * np.abs(draws).max()  # rare values may be missing among the draws
        bias = np.abs(draws.mean(axis=0) - x) - DEVIATIONS * draws.std(axis=0) / np.sqrt(DRAWS) - slack
        if omega is not None and (bias > 0).any():
            j = int(bias.argmax())
            raise CheckFailure(
                f"the mean of C(x)_{j} is {draws[:, j].mean():.4g} for {label} with x_{j} = {x[j]:.4g}, and a "
                "compressor with an omega is unbiased",
                "message",
            )
    return f"{name} allows errors of {bound:.3g}·‖x‖², and the largest mean is {largest:.3g}"


def is_symmetric(case: Case) -> bool:
    return case.entry.key == "algorithm.compressor"


def check_messages(case: Case) -> str:
    """Test that a message does not depend on the other rows."""
    compressor: Any = case.component
    seed = case.config.seed

    def message(rows: Array, ids: Array) -> Array:
        draws = streams(seed, "check", ids, 3)
        rows.setflags(write=False)
        return compressor.message(rows, lambda: draws, is_symmetric(case))

    return compare_rows(case, message, "message")


def compare_rows(case: Case, function: Callable[[Array, Array], Array], name: str) -> str:
    """Test that a function of rows and their numbers gives a row alone the same bits as among others."""
    rows = random_rows(case)
    full = function(rows.copy(), np.arange(C))
    singles = (function(rows[i : i + 1].copy(), np.arange(i, i + 1))[0] for i in range(C))
    compare_alone(full, singles, "row", "a client's row must not depend on the others", name)
    return f"each of {C} rows alone: the same bits"


def compare_alone(full: Array, singles: Iterable[Array], what: str, why: str, name: str) -> None:
    """Raise CheckFailure where one of ``singles``, each computed alone, has other bits than its part of ``full``."""
    for k, (alone, among) in enumerate(zip(singles, full, strict=True)):
        if alone.tobytes() != among.tobytes():
            distance = np.abs(alone - among).max()
            raise CheckFailure(f"{what} {k} alone and among {len(full)} {what}s differs by {distance:.2g}: {why}", name)


def check_steps(case: Case) -> str:
    """Test that γ of a client does not depend on the other clients, over many iterations."""
    step: Any = case.component
    d = np.array([[1.0], [7.0], [40.0]])
    for k in (0, 1, 2, 10, 1000):
        full = np.broadcast_to(step.gamma(k, 3, d), d.shape)
        for i in range(len(d)):
            alone = np.broadcast_to(step.gamma(k, 3, d[i : i + 1]), (1, 1))
            if alone[0, 0] != full[i, 0]:
                raise CheckFailure(
                    f"γ of a client with d = {d[i, 0]:g} is {alone[0, 0]:.6g} alone and {full[i, 0]:.6g} among "
                    f"others, in iteration {k}",
                    "gamma",
                )
    return f"γ = {float(np.max(step.gamma(0, 3, d))):.3g} at first, {float(np.max(step.gamma(1000, 3, d))):.3g} later"


def check_optimizer(case: Case) -> str:
    """Test that three steps on a row do not depend on the other rows."""
    rule: Any = case.component

    def third(rows: Array, ids: Array) -> Array:
        memory = None
        w = np.zeros_like(rows)
        for _ in range(3):
            w, memory = rule.step(w, rows - w, 0.1, memory)
        return w

    return compare_rows(case, third, "direction")


def check_server_optimizer(case: Case) -> str:
    """Test that the memory of a server optimiser keeps its size."""
    rule: Any = case.component
    x = random_rows(case)[0]
    memory = rule.begin(x)
    sizes = []
    for _ in range(3):
        rule.rate(x, 1.0)
        _, memory = rule.direction(memory, x)
        sizes.append(sum(np.size(part) for part in memory))
    if len(set(sizes)) > 1:
        raise CheckFailure(f"the memory has {', '.join(map(str, sizes))} numbers after steps 1 to 3", "direction")
    return f"{sizes[0]} numbers after every step"


def check_solver(case: Case) -> str:
    """Test that the solution is no worse than the start, and does not depend on the other rows."""
    rule: Any = case.component
    host = case.host
    f = max((f for _, f in host.blocks_of(None, (1, 0))), key=len)
    Y = 0.1 * stream(case.config.seed, "check").standard_normal((len(f), f.n))
    alpha = float(f.convexity().min())
    beta = float(f.lipschitz().max())
    W = np.zeros_like(Y)
    solution = rule.minimise(f, Y, W, alpha, beta, 0.5)
    before, after = (f.value(point) - np.vecdot(Y, point) for point in (W, solution))
    i = int((after - before).argmax())
    if not after[i] <= before[i] + 1e-12 * abs(before[i]):
        raise CheckFailure(
            f"f_i(w) − ⟨y_i, w⟩ of client {f.ids[i]} goes from {before[i]:.6g} up to {after[i]:.6g}", "minimise"
        )
    last = np.array([len(f) - 1])
    part: Local = f.take(last)
    alone = rule.minimise(part, Y[last], W[last], alpha, beta, 0.5)
    if alone.tobytes() != solution[last].tobytes():
        raise CheckFailure(
            f"client {f.ids[-1]} alone and among {len(f)} differs by {np.abs(alone - solution[last]).max():.2g}",
            "minimise",
        )
    return "no worse than where it began; a client alone: the same bits"


def check_distribution(case: Case) -> str:
    """Test that two draws from the same generator are equal."""
    rule: Any = case.component
    first, second = (rule.draw(stream(case.config.seed, "check"), 50) for _ in range(2))
    if first.tobytes() != second.tobytes():
        raise CheckFailure("two draws from the same generator differ: random numbers come from rng", "draw")
    return f"from {first.min():.3g} to {first.max():.3g}"


def compare_columns(rows: Array, function: Callable[[Array], Array], name: str) -> str:
    """Test that each column computed from rows has the same bits without the other columns."""
    full = function(rows.copy())
    singles = (function(rows[:, j : j + 1].copy())[0] for j in range(rows.shape[1]))
    compare_alone(full, singles, "column", "columns are computed on several ranks, each on its own", name)
    return f"each of {rows.shape[1]} columns alone: the same bits"


def random_uploads(case: Case) -> Array:
    """Return random rows (UPLOADS, N)."""
    rows = random_rows(case)
    return np.concatenate([rows, -rows[::-1], rows[:1] / 2])[:UPLOADS]


def check_attack_alone(case: Case) -> str:
    """Test that the changed upload of a client does not depend on the others."""
    attack: Any = case.component
    seed = case.config.seed
    return compare_rows(case, lambda rows, ids: attack.alone(rows, lambda: streams(seed, "check", ids, 4)), "alone")


def check_attack_together(case: Case) -> str:
    attack: Any = case.component
    return compare_columns(random_uploads(case), lambda rows: attack.together(rows, 2), "together")


def check_equal_uploads(case: Case) -> str:
    """Test that the mean of equal uploads is one of them."""
    robust: Any = case.component
    row = random_rows(case)[0]
    # the centre is the answer already, for means that move slowly
    mean = robust.mean(np.tile(row, (UPLOADS, 1)), UPLOADS, row)
    error = float(np.abs(mean - row).max() / np.abs(row).max())
    if error > 1e-9:
        raise CheckFailure(f"the mean of {UPLOADS} equal uploads is off by {error:.2g}", "mean")
    return f"the mean of equal uploads is off by {error:.2g}"


def check_columns(case: Case) -> str:
    """Test that each column of the mean does not depend on the others."""
    robust: Any = case.component
    if not robust.by_column:
        return "it takes all columns together"
    return compare_columns(random_uploads(case), lambda rows: robust.mean(rows, len(rows), 0.0), "mean")


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
                "load",
            )
        if not np.isfinite(full).all():
            raise CheckFailure(f"{name} has numbers that are not finite", "load")
    return f"{len(y)} samples of {one.m} clients, client by client and at once: the same"


def check_partition(case: Case) -> str:
    """Test that a partition repeats itself with the same generator, and uses no row twice."""
    rule: Any = case.component
    y = stream(0, "check").integers(0, 3, 90).astype(float)
    first, second = (rule.split(y, 6, stream(case.config.seed, "check", 1)) for _ in range(2))
    if any(a.tobytes() != b.tobytes() for a, b in zip(first, second, strict=True)):
        raise CheckFailure("two deals from the same generator differ: random numbers come from rng", "deal")
    order, sizes = first
    if len(np.unique(order[: sizes.sum()])) < sizes.sum():
        raise CheckFailure("a row is dealt twice", "deal")
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
                "selector",
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
            "selector",
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
            raise CheckFailure("two graphs with the same seed differ: random numbers come from rng", "edges")
    # graphs that change each round need to be connected only over time
    gap = first.spectrum.gap
    if not gap > 1e-9 and not graph.is_changing:
        raise CheckFailure(f"W has the spectral gap {gap:.2g}: the graph is not connected", "edges")
    return f"{first.at(1).edges} edges, spectral gap {gap:.3g}"


CHECKS: dict[str, list[Check]] = {
    "compressors": [("errors", check_errors), ("a row alone", check_messages)],
    "steps": [("step sizes", check_steps)],
    "optimizers": [("a row alone", check_optimizer)],
    "server_optimizers": [("memory", check_server_optimizer)],
    "solvers": [("minimisers", check_solver)],
    "distributions": [("draws", check_distribution)],
    "attacks": [("a row alone", check_attack_alone), ("a column alone", check_attack_together)],
    "robust_means": [("equal uploads", check_equal_uploads), ("a column alone", check_columns)],
    "data": [("samples", check_samples)],
    "partitions": [("parts", check_partition)],
    "selections": [("rounds out of turn", check_out_of_turn), ("odds", check_odds)],
    "graphs": [("weights", check_graph)],
}
