"""Tests whether the samples determine the coefficients of a fit, and if not, which are undetermined and why."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.data.labels import abridge
from mpifed.data.sample_columns import count_samples
from mpifed.experiment.prepare import PreparedRun
from mpifed.features.penalty.coefficients import coefficient_names
from mpifed.statistics.penalised_fit import iterate_clients, typical_dispersion

SINGULAR = 1e-13  # smallest eigenvalue, over the largest, of an invertible Hessian scaled to a diagonal of ones
FLAT = 1e-10  # relative change of f that is rounding
STEP = 1e3  # in units of scores: the longest step that tests whether f depends on coefficients
FAR = 1e4  # a factor of coefficients, or a step in units of scores, that makes probabilities nearly 0 or 1
ERRORS = 10.0  # standard errors that a coefficient is moved by: if it is determined the log-likelihood falls
LOSS = 0.1  # of log-likelihood: less than one sample against such a step costs
NEAR = 1.0  # squared distance from the optimum, in standard errors, within which a run has arrived
LITTLE = 1e-2  # of the curvature at 0: directions with less are tested
PART = 0.05  # of the largest entry of a direction: coefficients below are not named


class ModelPoint(NamedTuple):
    """A model x with f, its gradient and its Hessian there."""

    x: Array  # (n,)
    f: float
    gradient: Array  # (n,)
    hessian: Array  # (n, n)


def invert_or_refuse(parts: PreparedRun, at: ModelPoint) -> Array:
    """Return H⁻¹ (n, n) of the Hessian at a model; raise UserError if f has no unique minimum, or H is singular.

    Columns depend on each other if f is constant along a direction from 0. Classes are separated, or a category has no
    event, if the log-likelihood does not fall along a direction, tested at ERRORS standard errors.
    """
    # the most helpful error comes first: columns that depend on each other also make a run diverge, and a diverged
    # model looks separated
    inverse = invert_hessian(at.hessian)
    problem = parts.setup.problem
    # if H is 0 up to rounding, scaling its columns to one size makes it look regular
    if inverse is None or not (getattr(problem, "lam", 0) or getattr(problem, "mu", 0)):
        why = problem.singularity_reason(parts.data, at.x)
        if why:
            raise UserError(why)
    if inverse is None:
        refuse_dependent(parts, at)
    refuse_far(parts, at, inverse is None)
    if not problem.has("pearson") and (problem.has("log_likelihood") or problem.has("predict")):
        refuse_separation(parts, at, inverse)
    if inverse is None:
        raise UserError("the Hessian at this model is singular: it is far from the optimum")
    return inverse


def invert_hessian(H: Array) -> Array | None:
    """Return H⁻¹ (n, n), or None if H is not positive definite; columns of any size are scaled first."""
    if not np.isfinite(H).all() or not (np.diag(H) > 0).all():
        return None
    # the eigenvalues of income in cents beside an age would suggest a singular matrix, without reason
    scale = column_scales(H)
    even = H * scale * scale[:, None]
    values = np.linalg.eigvalsh(even)
    if not values[0] > SINGULAR * values[-1]:
        return None
    inverse: Array = np.linalg.inv(even) * scale * scale[:, None]
    return inverse


def column_scales(H: Array) -> Array:
    """Return powers of 2 (n,), which round nothing, near 1/√H_jj; 1 if H_jj is 0."""
    diagonal = np.diag(H)
    usable = np.isfinite(diagonal) & (diagonal > 0)
    return np.exp2(-np.round(np.log2(np.where(usable, diagonal, 1.0)) / 2))


def value(parts: PreparedRun, x: Array) -> float:
    """Return f(x)."""
    return sum(float(local.value(x).sum()) for local in iterate_clients(parts)) / parts.setup.m


def hessian(parts: PreparedRun, x: Array) -> Array:
    """Return ∇²f(x): (n, n)."""
    return sum(local.hess(np.tile(x, (len(local), 1))).sum(axis=0) for local in iterate_clients(parts)) / parts.setup.m


def refuse_dependent(parts: PreparedRun, at: ModelPoint) -> None:
    """Raise UserError if f does not depend on some combination of coefficients, tested at 0."""
    # at 0, because far from it probabilities are rounded to 0 or 1 and the Hessian vanishes along other directions
    n = len(at.x)
    zero = np.zeros(n)
    H = hessian(parts, zero)
    scale = column_scales(H)
    values, vectors = np.linalg.eigh(H * scale * scale[:, None])
    f = value(parts, zero)
    # with small labels f is small too, and a longer step would change f by rounding alone
    step = STEP * min(1.0, float(np.sqrt(f / values[-1])))
    entries = np.zeros(n)
    for u in vectors.T[values <= SINGULAR * max(values[-1], 0)]:
        # an eigenvalue near 0 may be rounding: f itself decides, on both sides, after a long step
        moved = [value(parts, side * step * scale * u) for side in (-1, 1)]
        if np.abs(np.array(moved) - f).max() <= FLAT * abs(f):
            entries = np.maximum(entries, np.abs(u))
    columns = name_coefficients(parts, entries)
    if not columns:
        return
    d = count_samples(parts.data)
    if parts.setup.problem.takes() == "classes":
        raise UserError(
            "the data do not determine the coefficients: f stays the same where the scores of all classes move "
            "together; set problem.lam above 0, and problem.bias = false"
        )
    if d < n:
        raise UserError(f"{d} samples do not determine {n} coefficients: use fewer columns{regularisation_hint(parts)}")
    if len(columns) == 1:
        raise UserError(
            f"the data do not determine the coefficient of {columns[0]}: its column says nothing, as one does that is "
            "0 in all rows; leave it out"
        )
    raise UserError(
        f"the data do not determine the coefficients of {join_words(columns)}: their columns depend on each other, as "
        "one that is given twice does, or all levels of a category beside a column of ones; leave one of them out"
    )


def refuse_far(parts: PreparedRun, at: ModelPoint, singular: bool) -> None:
    """Raise UserError if f is above its value at 0, for a regular H by more than random rounds explain."""
    f = value(parts, np.zeros(len(at.x)))
    slack = 0.0 if singular else NEAR * typical_dispersion(parts.setup.problem, f) / count_samples(parts.data)
    if not at.f <= f + slack:
        raise UserError(
            f"this model is far from the optimum: f is {at.f:.4g}, and {f:.4g} with all coefficients at 0, so "
            'it says nothing of the data; make a run that comes closer, with smaller steps or algorithm = "newton"'
        )


def refuse_separation(parts: PreparedRun, at: ModelPoint, inverse: Array | None) -> None:
    """Raise UserError if the log-likelihood has no maximum, because it does not fall along a direction."""
    d = count_samples(parts.data)
    beyond = value(parts, FAR * at.x)
    if beyond <= at.f and d * beyond < LOSS:
        raise UserError(
            "the coefficients have no best values: they separate the classes, or order all events, so f falls to 0 as "
            f"they grow; use fewer columns{regularisation_hint(parts)}"
        )
    # a run that stopped early still has slopes everywhere, so nothing is known of where f falls for ever
    if inverse is not None and d * float(at.gradient @ inverse @ at.gradient) > NEAR:
        return
    H = hessian(parts, np.zeros(len(at.x)))
    entries = np.zeros(len(at.x))
    # both signs, because eigenvectors have none
    for v in flat_directions(at, H, inverse):
        if is_flat_along(parts, at, H, v) or is_flat_along(parts, at, H, -v):
            entries = np.maximum(entries, np.abs(v) * np.sqrt(np.diag(H)) / np.sqrt(v @ H @ v))
    columns = name_coefficients(parts, entries)
    if columns:
        raise UserError(
            f"the coefficient of {join_words(columns)} has no best value: f falls for ever along it, as where a "
            "category has no event or a column separates the classes; leave such a column "
            f"out{regularisation_hint(parts)}"
        )


def flat_directions(at: ModelPoint, H: Array, inverse: Array | None) -> Iterator[Array]:
    """Yield directions (n,) along which f may fall for ever: Newton's, and those where the curvature is small."""
    if inverse is not None and at.gradient.any():
        yield inverse @ at.gradient
    scale = column_scales(H)
    both = scale * scale[:, None]
    try:
        values, vectors = eigh(at.hessian * both, H * both)
    except np.linalg.LinAlgError:
        return  # H is singular
    yield from (scale * vectors[:, values < LITTLE].T)


def is_flat_along(parts: PreparedRun, at: ModelPoint, H: Array, v: Array) -> bool:
    """Return whether the log-likelihood does not fall within ERRORS standard errors, or FAR, along v (n,)."""
    d = count_samples(parts.data)
    unit = float(v @ H @ v)
    left = max(float(v @ at.hessian @ v), 0.0)
    if not unit > 0:
        return False
    step = FAR / np.sqrt(unit)
    if d * left > 0:
        step = min(step, ERRORS / np.sqrt(d * left))
    return d * (value(parts, at.x + step * v) - at.f) < LOSS


def name_coefficients(parts: PreparedRun, entries: Array) -> list[str]:
    """Return the names of the coefficients with large ``entries`` (n,); of many, the first."""
    if not entries.any():
        return []
    every = coefficient_names(parts.data, len(entries))
    return list(abridge([every[j] for j in np.flatnonzero(entries > PART * entries.max())]))


def join_words(words: list[str]) -> str:
    """Return "A, b and c" for a list of words."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def regularisation_hint(parts: PreparedRun) -> str:
    """Return the advice to set a regulariser, if the problem has an option for it."""
    key = next((key for key in ("lam", "mu") if hasattr(parts.setup.problem, key)), None)
    return f", or set problem.{key} above 0" if key else ""
