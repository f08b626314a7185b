"""Checks of compressors, step sizes, optimisers, solvers and distributions: calls with random rows."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from mpifed.checking.case import Case
from mpifed.checking.table import Check, Found, Open, place
from mpifed.core.streams import stream, streams
from mpifed.core.typing import Array
from mpifed.federation.local import Local

DRAWS = 2000  # messages of a vector whose mean and mean error are compared with what a compressor says
DEVIATIONS = 5.0  # standard deviations that a mean may be off
ORDER = 6  # of the packed matrices that a compressor of matrices gets
C, N = 5, 21  # rows and columns of random arrays; N is also a packed matrix of order ORDER


def rows_of(case: Case) -> Array:
    """Random rows (C, N), with entries of many sizes."""
    rng = stream(case.config.seed, "check")
    return rng.standard_normal((C, N)) * np.exp(2 * rng.standard_normal((C, N)))


def kinds(case: Case) -> dict[str, Array]:
    """Vectors (N,) of several kinds, by name."""
    rng = stream(case.config.seed, "check", 1)
    return {
        "a Gaussian vector": rng.standard_normal(N),
        "a vector with entries of many sizes": rows_of(case)[0],
        "a vector of ones": np.ones(N),
        "a vector with one entry": np.eye(1, N, 3)[0],
    }


def lengths(rows: Array, symmetric: bool) -> Array:
    """Squared norms of rows; of packed matrices that of Frobenius."""
    weights = np.ones(N)
    if symmetric:
        weights += np.concatenate([np.arange(k) > 0 for k in range(ORDER, 0, -1)])
    return np.vecdot(rows * rows, weights)


def samples(case: Case, x: Array, symmetric: bool) -> Array:
    """Messages C(x) of one vector, with draws of their own: (DRAWS, N)."""
    compressor: Any = case.component
    draws = streams(case.config.seed, "check", np.arange(DRAWS), 2)
    return compressor.message(np.broadcast_to(x, (DRAWS, N)).copy(), lambda: draws, symmetric)


def errors(case: Case) -> str:
    """δ and ω against the mean error of sampled messages, and E C(x) = x where there is an ω."""
    compressor: Any = case.component
    symmetric = is_symmetric(case)
    delta, omega = (getattr(compressor, name)(N, symmetric) for name in ("delta", "omega"))
    if delta is None and omega is None:
        raise Open("it has neither δ nor ω")
    bound, name = (1 - delta, "delta") if delta is not None else (omega, "omega")
    largest = 0.0
    for kind, x in kinds(case).items():
        found = samples(case, x, symmetric)
        ratio = lengths(found - x, symmetric) / lengths(x, symmetric)
        largest = max(largest, float(ratio.mean()))
        # a wrong bound is found where the mean is beyond it for certain: a draw may be far off, their mean is not
        for limit, what in ((None if delta is None else 1 - delta, "delta"), (omega, "omega")):
            if limit is not None and ratio.mean() - DEVIATIONS * ratio.std() / np.sqrt(DRAWS) > limit + 1e-9:
                raise Found(
                    f"E‖C(x) − x‖² is {ratio.mean():.4g}·‖x‖² for {kind}, and {what} says at most {limit:.4g}",
                    place(compressor, what),
                )
        rare = DEVIATIONS**2 / DRAWS * np.abs(found).max()  # what seldom comes may be missing among the draws
        bias = np.abs(found.mean(axis=0) - x) - DEVIATIONS * found.std(axis=0) / np.sqrt(DRAWS) - rare
        if omega is not None and (bias > 0).any():
            j = int(bias.argmax())
            raise Found(
                f"the mean of C(x)_{j} is {found[:, j].mean():.4g} for {kind} with x_{j} = {x[j]:.4g}, and a "
                "compressor with an omega is unbiased",
                place(compressor, "message"),
            )
    return f"{name} allows errors of {bound:.3g}·‖x‖², and the largest mean is {largest:.3g}"


def is_symmetric(case: Case) -> bool:
    return case.place.key == "algorithm.compressor"


def messages(case: Case) -> str:
    compressor: Any = case.component
    seed = case.config.seed

    def message(rows: Array, ids: Array) -> Array:
        draws = streams(seed, "check", ids, 3)
        rows.setflags(write=False)
        return compressor.message(rows, lambda: draws, is_symmetric(case))

    return by_row(case, message, "message")


def by_row(case: Case, computed: Callable[[Array, Array], Array], name: str) -> str:
    """A function of rows and their numbers gives a row alone the bits that it has among others."""
    rows = rows_of(case)
    whole = computed(rows.copy(), np.arange(C))
    singles = (computed(rows[i : i + 1].copy(), np.arange(i, i + 1))[0] for i in range(C))
    refuse_others(case, whole, singles, "row", "a client's row must not depend on the others", name)
    return f"each of {C} rows alone: the same bits"


def refuse_others(case: Case, whole: Array, singles: Iterable[Array], what: str, why: str, name: str) -> None:
    """Found where one of ``singles``, each computed alone, has other bits than its part of the ``whole``."""
    for k, (alone, among) in enumerate(zip(singles, whole, strict=True)):
        if alone.tobytes() != among.tobytes():
            apart = np.abs(alone - among).max()
            raise Found(
                f"{what} {k} alone and among {len(whole)} {what}s differs by {apart:.2g}: {why}",
                place(case.component, name),
            )


def steps(case: Case) -> str:
    """γ of many iterations, for many clients and for each alone."""
    step: Any = case.component
    d = np.array([[1.0], [7.0], [40.0]])
    for k in (0, 1, 2, 10, 1000):
        whole = np.broadcast_to(step.gamma(k, 3, d), d.shape)
        for i in range(len(d)):
            alone = np.broadcast_to(step.gamma(k, 3, d[i : i + 1]), (1, 1))
            if alone[0, 0] != whole[i, 0]:
                raise Found(
                    f"γ of a client with d = {d[i, 0]:g} is {alone[0, 0]:.6g} alone and {whole[i, 0]:.6g} among "
                    f"others, in iteration {k}",
                    place(step, "gamma"),
                )
    return f"γ = {float(np.max(step.gamma(0, 3, d))):.3g} at first, {float(np.max(step.gamma(1000, 3, d))):.3g} later"


def optimizer(case: Case) -> str:
    rule: Any = case.component

    def third(rows: Array, ids: Array) -> Array:
        memory = None
        w = np.zeros_like(rows)
        for _ in range(3):
            w, memory = rule.step(w, rows - w, 0.1, memory)
        return w

    return by_row(case, third, "direction")


def server_optimizer(case: Case) -> str:
    rule: Any = case.component
    x = rows_of(case)[0]
    memory = rule.begin(x)
    sizes = []
    for _ in range(3):
        rule.rate(x, 1.0)
        _, memory = rule.direction(memory, x)
        sizes.append(sum(np.size(part) for part in memory))
    if len(set(sizes)) > 1:
        raise Found(f"the memory has {', '.join(map(str, sizes))} numbers after steps 1 to 3", place(rule, "direction"))
    return f"{sizes[0]} numbers after every step"


def solver(case: Case) -> str:
    """The point found is no worse than where it began, and does not depend on the other rows."""
    rule: Any = case.component
    host = case.host
    f = max((f for _, f in host.blocks_of(None, (1, 0))), key=len)
    Y = 0.1 * stream(case.config.seed, "check").standard_normal((len(f), f.n))
    alpha = float(f.convexity().min())
    beta = float(f.lipschitz().max())
    W = np.zeros_like(Y)
    found = rule.minimise(f, Y, W, alpha, beta, 0.5)
    before, after = (f.value(point) - np.vecdot(Y, point) for point in (W, found))
    i = int((after - before).argmax())
    if not after[i] <= before[i] + 1e-12 * abs(before[i]):
        raise Found(
            f"f_i(w) − ⟨y_i, w⟩ of client {f.ids[i]} goes from {before[i]:.6g} up to {after[i]:.6g}",
            place(rule, "minimise"),
        )
    one = np.array([len(f) - 1])
    part: Local = f.take(one)
    alone = rule.minimise(part, Y[one], W[one], alpha, beta, 0.5)
    if alone.tobytes() != found[one].tobytes():
        raise Found(
            f"client {f.ids[-1]} alone and among {len(f)} differs by {np.abs(alone - found[one]).max():.2g}",
            place(rule, "minimise"),
        )
    return "no worse than where it began; a client alone: the same bits"


def distribution(case: Case) -> str:
    rule: Any = case.component
    first, second = (rule.draw(stream(case.config.seed, "check"), 50) for _ in range(2))
    if first.tobytes() != second.tobytes():
        raise Found("two draws from the same generator differ: random numbers come from rng", place(rule, "draw"))
    return f"from {first.min():.3g} to {first.max():.3g}"


CHECKS: dict[str, list[Check]] = {
    "compressors": [("errors", errors), ("a row alone", messages)],
    "steps": [("step sizes", steps)],
    "optimizers": [("a row alone", optimizer)],
    "server_optimizers": [("memory", server_optimizer)],
    "solvers": [("minimisers", solver)],
    "distributions": [("draws", distribution)],
}
