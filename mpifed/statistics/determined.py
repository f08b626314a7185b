"""Whether the samples determine the coefficients of a fit, and if not, which and why."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh

from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.data.labels import folded
from mpifed.data.sample_columns import samples_of
from mpifed.experiment.prepare import Prepared
from mpifed.features.penalty.coefficients import names
from mpifed.statistics.penalised_fit import clients, unit_of

SINGULAR = 1e-13  # least eigenvalue of a Hessian with a diagonal of ones that can be inverted, as a part of the largest
FLAT = 1e-10  # change of f, as a part of it, that is rounding
STEP = 1e3  # in units of scores, how far at most coefficients are moved to see whether f depends on them
FAR = 1e4  # a factor of coefficients, or a step in units of scores, with which the likelihood is all but 0 or 1
ERRORS = 10.0  # standard errors that a coefficient is moved by: where it is determined the log-likelihood loses some
LOSS = 0.1  # of the log-likelihood: less than any sample that speaks against such a step costs
NEAR = 1.0  # squared distance from the optimum, in standard errors, within which a run has arrived
LITTLE = 1e-2  # curvature that is left of that at 0 where directions are looked at
PART = 0.05  # of the largest part of a direction: coefficients below are not named


class Place(NamedTuple):
    """A model, and f there."""

    x: Array  # (n,)
    f: float
    gradient: Array  # (n,)
    hessian: Array  # (n, n)


def determined(parts: Prepared, at: Place) -> Array:
    """H⁻¹ (n, n) of the Hessian at a model. UserError where f has no one minimum, or where H is singular.

    Columns depend on each other where f is the same along a direction from 0. Classes are separated, or a category has
    no event, where the log-likelihood loses nothing along a direction however far: moved by ERRORS standard errors.
    """
    # the sentence that helps most comes first: columns that depend on each other make a run go far as well, and a model
    # that is far looks separated
    inverse = inverted(at.hessian)
    problem = parts.setup.problem
    # where H is 0 but for rounding, columns that are brought to one size make it look regular
    if inverse is None or not (getattr(problem, "lam", 0) or getattr(problem, "mu", 0)):
        why = problem.flat(parts.data, at.x)
        if why:
            raise UserError(why)
    if inverse is None:
        refuse_dependent(parts, at)
    refuse_far(parts, at, inverse is None)
    if not problem.has("pearson") and (problem.has("log_likelihood") or problem.has("predict")):
        refuse_separated(parts, at, inverse)
    if inverse is None:
        raise UserError("the Hessian at this model is singular: it is far from the optimum")
    return inverse


def inverted(H: Array) -> Array | None:
    """H⁻¹ (n, n), or None where H is not positive definite; columns of any size are brought to one."""
    if not np.isfinite(H).all() or not (np.diag(H) > 0).all():
        return None
    # income in cents beside an age would be a singular matrix to the eigenvalues, and none to the data
    scale = sizes(H)
    even = H * scale * scale[:, None]
    values = np.linalg.eigvalsh(even)
    if not values[0] > SINGULAR * values[-1]:
        return None
    inverse: Array = np.linalg.inv(even) * scale * scale[:, None]
    return inverse


def sizes(H: Array) -> Array:
    """Powers of 2 (n,), so that nothing is rounded, near 1/√H_jj, and 1 where H_jj is 0."""
    diagonal = np.diag(H)
    there = np.isfinite(diagonal) & (diagonal > 0)
    return np.exp2(-np.round(np.log2(np.where(there, diagonal, 1.0)) / 2))


def value(parts: Prepared, x: Array) -> float:
    """f(x)."""
    return sum(float(local.value(x).sum()) for local in clients(parts)) / parts.setup.m


def hessian(parts: Prepared, x: Array) -> Array:
    """∇²f(x): (n, n)."""
    return sum(local.hess(np.tile(x, (len(local), 1))).sum(axis=0) for local in clients(parts)) / parts.setup.m


def refuse_dependent(parts: Prepared, at: Place) -> None:
    """UserError where f does not depend on a combination of coefficients, looked for at 0, where nothing is flat."""
    # at 0: far from it probabilities are 0 or 1 to rounding, and the Hessian is flat in directions that matter
    n = len(at.x)
    zero = np.zeros(n)
    H = hessian(parts, zero)
    scale = sizes(H)
    values, vectors = np.linalg.eigh(H * scale * scale[:, None])
    f = value(parts, zero)
    # of labels that are all small, f is small too: a step beyond them would be a change that is all rounding
    step = STEP * min(1.0, float(np.sqrt(f / values[-1])))
    found = np.zeros(n)
    for u in vectors.T[values <= SINGULAR * max(values[-1], 0)]:
        # an eigenvalue near 0 may be rounding; f itself decides, on both sides, after a step long for any column
        moved = [value(parts, side * step * scale * u) for side in (-1, 1)]
        if np.abs(np.array(moved) - f).max() <= FLAT * abs(f):
            found = np.maximum(found, np.abs(u))
    which = listed(parts, found)
    if not which:
        return
    d = samples_of(parts.data)
    if parts.setup.problem.takes() == "classes":
        raise UserError(
            "the data do not determine the coefficients: f stays the same where the scores of all classes move "
            "together; set problem.lam above 0, and problem.bias = false"
        )
    if d < n:
        raise UserError(f"{d} samples do not determine {n} coefficients: use fewer columns{or_regularised(parts)}")
    if len(which) == 1:
        raise UserError(
            f"the data do not determine the coefficient of {which[0]}: its column says nothing, as one does that is 0 "
            "in all rows; leave it out"
        )
    raise UserError(
        f"the data do not determine the coefficients of {enumerated(which)}: their columns depend on each other, as "
        "one that is given twice does, or all levels of a category beside a column of ones; leave one of them out"
    )


def refuse_far(parts: Prepared, at: Place, singular: bool) -> None:
    """UserError where f is above its value at 0; where H is regular, by more than rounds that are random explain."""
    f = value(parts, np.zeros(len(at.x)))
    slack = 0.0 if singular else NEAR * unit_of(parts.setup.problem, f) / samples_of(parts.data)
    if not at.f <= f + slack:
        raise UserError(
            f"this model is far from the optimum: f is {at.f:.4g}, and {f:.4g} with all coefficients at 0, so "
            'it says nothing of the data; make a run that comes closer, with smaller steps or algorithm = "newton"'
        )


def refuse_separated(parts: Prepared, at: Place, inverse: Array | None) -> None:
    """UserError where the log-likelihood has no maximum: it does not fall along a direction."""
    d = samples_of(parts.data)
    beyond = value(parts, FAR * at.x)
    if beyond <= at.f and d * beyond < LOSS:
        raise UserError(
            "the coefficients have no best values: they separate the classes, or order all events, so f falls to 0 as "
            f"they grow; use fewer columns{or_regularised(parts)}"
        )
    # a run that stopped early has slopes left everywhere: nothing can be said of where f falls for ever
    if inverse is not None and d * float(at.gradient @ inverse @ at.gradient) > NEAR:
        return
    H = hessian(parts, np.zeros(len(at.x)))
    found = np.zeros(len(at.x))
    # v has no sign where it is an eigenvector
    for v in directions(at, H, inverse):
        if falls(parts, at, H, v) or falls(parts, at, H, -v):
            found = np.maximum(found, np.abs(v) * np.sqrt(np.diag(H)) / np.sqrt(v @ H @ v))
    which = listed(parts, found)
    if which:
        raise UserError(
            f"the coefficient of {enumerated(which)} has no best value: f falls for ever along it, as where a category "
            f"has no event or a column separates the classes; leave such a column out{or_regularised(parts)}"
        )


def directions(at: Place, H: Array, inverse: Array | None) -> Iterator[Array]:
    """Where f may fall for ever: Newton's, and those along which little is left of the curvature H at 0: (n,) each."""
    if inverse is not None and at.gradient.any():
        yield inverse @ at.gradient
    scale = sizes(H)
    both = scale * scale[:, None]
    try:
        values, vectors = eigh(at.hessian * both, H * both)
    except np.linalg.LinAlgError:
        return  # H is singular
    yield from (scale * vectors[:, values < LITTLE].T)


def falls(parts: Prepared, at: Place, H: Array, v: Array) -> bool:
    """Whether the log-likelihood loses nothing on ERRORS standard errors along v (n,), or FAR units of scores."""
    d = samples_of(parts.data)
    unit = float(v @ H @ v)
    left = max(float(v @ at.hessian @ v), 0.0)
    if not unit > 0:
        return False
    step = FAR / np.sqrt(unit)
    if d * left > 0:
        step = min(step, ERRORS / np.sqrt(d * left))
    return d * (value(parts, at.x + step * v) - at.f) < LOSS


def listed(parts: Prepared, found: Array) -> list[str]:
    """The names of the coefficients with a part in directions ``found`` (n,), of many the first ones."""
    if not found.any():
        return []
    known = names(parts.data, len(found))
    return list(folded([known[j] for j in np.flatnonzero(found > PART * found.max())]))


def enumerated(words: list[str]) -> str:
    """A, b and c."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else words[0]


def or_regularised(parts: Prepared) -> str:
    """The advice to have a regulariser, where the problem has an option for it."""
    key = next((key for key in ("lam", "mu") if hasattr(parts.setup.problem, key)), None)
    return f", or set problem.{key} above 0" if key else ""
