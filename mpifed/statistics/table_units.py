"""Coefficients of standardised features in the units of the table, by a linear map."""

from typing import NamedTuple

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.data.dataset import Units
from mpifed.data.labels import abridge
from mpifed.experiment.prepare import PreparedRun
from mpifed.features.conditions import guarantees_privacy
from mpifed.features.settings import Experiment
from mpifed.results.result import RunRecord

SAME = 1e-4  # of a deviation: in single precision means and deviations of a run and its table differ by less
EACH = "estimates are for a standard deviation of each feature"


class TableUnits(NamedTuple):
    """The map T (n, n) from coefficients of a run to those of its table, None if these are the same, and notes.

    As ⟨x, (a − mean)/deviation⟩ = ⟨x/deviation, a⟩ − ⟨x/deviation, mean⟩, the last number goes to the intercept.
    """

    T: Array | None
    notes: list[str]

    def convert(self, x: Array) -> Array:
        """Return coefficients x (n,), or a step of them, in the units of the table."""
        return x if self.T is None else self.T @ x

    def variances(self, covariance: Array) -> Array:
        """Return the diagonal of T C Tᵀ (n,) for the covariance C (n, n) of the coefficients of the run."""
        if self.T is None:
            return np.diag(covariance)
        return ((self.T @ covariance) * self.T).sum(axis=1)


def table_units(result: RunRecord, config: Experiment, parts: PreparedRun, x: Array) -> TableUnits:
    """Return the map of a study and notes on units; raise UserError if the table has changed."""
    if getattr(config.data, "standardise", None) == "own":
        return TableUnits(None, [f'{EACH} at each client, as data.standardise = "own" has it: "pooled" has one unit'])
    if config.data.common:
        return TableUnits(None, [f"{config.data.common}: estimates are for these columns, not for those of the file"])
    units = parts.data.units
    if units is None:
        return TableUnits(None, [])
    problem = parts.setup.problem
    notes = []
    if result.units:
        units = stored_units(result, units)
    elif not guarantees_privacy(config):
        notes.append(
            "this result has no means and deviations of its features, as those of an older mpifed: its estimates are "
            "brought to the units of the table by those of the samples as they are now"
        )
    conversion = conversion_matrix(parts, units, len(x)) if problem.linear else None
    if conversion is None:
        return TableUnits(None, [f"{EACH}, for {problem.label()} does not say by linear = that they weigh features"])
    T, constant_part = conversion
    if constant_part is not None and problem.linear == "scores":
        constants = ", ".join(abridge([f"{value:.6g}" for value in constant_part @ x]))
        notes.append(
            f"features are centred and there is no intercept, so all scores have {constants} beside these estimates: "
            "data.ones = true makes that a coefficient"
        )
    if any(getattr(problem, key, 0) for key in ("lam", "mu")) or config.objective.penalised:
        notes.append("the regularisation is of coefficients for a standard deviation, the estimates for a unit")
    return TableUnits(T, notes)


def stored_units(result: RunRecord, now: Units) -> Units:
    """Return the means and deviations of a result; raise UserError if the samples have others ``now``."""
    mean, deviation = (result.units.get(key, np.zeros(0)).astype(float) for key in ("mean", "deviation"))
    if mean.shape != now.mean.shape or deviation.shape != now.mean.shape:
        raise UserError(
            f"the data have changed: the result has means and deviations of {len(mean)} features, and now there are "
            f"{len(now.mean)}"
        )
    scale = np.where(now.deviation > 0, now.deviation, 1.0)
    difference = np.maximum(np.abs(mean - now.mean), np.abs(deviation - now.deviation)) / scale
    # a mean that is large beside the deviation is rounded: that is no change of the table
    difference -= np.abs(now.mean) / scale * 1e-6
    if not (difference <= SAME).all():
        j = int(np.argmax(~(difference <= SAME)))
        raise UserError(
            f"the data have changed: feature {j} (counted from 0) had the mean {mean[j]:.6g} and deviation "
            f"{deviation[j]:.6g} in the run, and has {now.mean[j]:.6g} and {now.deviation[j]:.6g} now: give the same "
            "samples"
        )
    return Units(mean, deviation)


def conversion_matrix(parts: PreparedRun, units: Units, n: int) -> tuple[Array, Array | None] | None:
    """Return T (n, n), and None or a matrix; None if x is not a weight for each feature, perhaps with biases.

    Without an intercept the matrix (1 or classes, n) times x is the constant that scores have beside T x.
    """
    data = parts.data
    f = data.n
    k = 1 if n == f else data.classes
    biases = n - k * f
    if not k or biases not in (0, k):
        return None
    more = f - len(units.mean)
    varies = units.deviation > 0
    scale = np.pad(np.where(varies, 1 / np.where(varies, units.deviation, 1), 1), (0, more), constant_values=1)
    shift = np.pad(np.where(varies, units.mean, 0), (0, more)) * scale
    T = np.diag(np.concatenate([np.tile(scale, k), np.ones(biases)]))
    if not (biases or data.intercepts):
        return T, -np.kron(np.eye(k), shift)
    for c in range(k):
        row = k * f + c if biases else c * f + f - 1
        T[row, c * f : (c + 1) * f] -= shift
    return T, None
