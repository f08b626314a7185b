"""Stop rules: the conditions under which a run ends."""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

from mpifed.core.component import StudyTable
from mpifed.core.errors import UserError
from mpifed.core.roles import TEST, VALIDATED, VALIDATION, Role
from mpifed.core.toml import toml_value

BUDGETS = ("rounds", "seconds", "simulated_seconds")  # what may run out before a run has converged


class StopRules(StudyTable):
    """Stop rules; absent or 0 means off. The first that holds ends the run, and `rounds` does in any case."""

    gradient: Annotated[float, Meta(ge=0, description="‖∇f‖² over gradient_scale at most")] = 0.0
    gradient_scale: Annotated[
        Literal["1", "m^2"], Meta(description="what ‖∇f‖² is divided by; the papers' tables: m^2")
    ] = "1"
    gradient_relative: Annotated[
        float, Meta(ge=0, description="lowers the bound to at most this share of the error of round 0")
    ] = 0.0
    objective_gap: Annotated[float, Meta(ge=0, description="f − optimum at most")] = 0.0
    optimum: Annotated[float | None, Meta(description="least value f*, for objective_gap")] = None
    accuracy: Annotated[
        float, Meta(ge=0, le=1, description="accuracy of the server's model at least, of the samples that `by` says")
    ] = 0.0
    patience: Annotated[
        int, Meta(ge=0, description="this many evaluations without an improvement of what `by` says")
    ] = 0
    delta: Annotated[float, Meta(ge=0, description="only more than this is an improvement, for patience")] = 0.0
    by: Annotated[
        Annotated[str, Meta(min_length=1)] | None,
        Meta(
            description="what models are chosen by: validation, test, or a column such as validation_accuracy "
            "(default: the objective of validation samples, of training samples where there are none)",
        ),
    ] = None
    variance: Annotated[
        float, Meta(ge=0, description="sample variance of the last four f at most this times n/(1 + f) (fedepm)")
    ] = 0.0
    rising: Annotated[
        bool, Meta(description="f and ‖∇f‖² both above the largest of the three before (fedepm, code)")
    ] = False
    diverged: Annotated[
        float, Meta(ge=0, description="f this many times its start fails the run; 0: it goes on until numbers overflow")
    ] = 1e12
    seconds: Annotated[float, Meta(ge=0, description="elapsed seconds at least")] = 0.0
    simulated_seconds: Annotated[float, Meta(ge=0, description="simulated seconds at least, with [system]")] = 0.0

    def __post_init__(self) -> None:
        if self.objective_gap and self.optimum is None:
            raise ValueError("objective_gap needs optimum, the least value of f")
        if self.delta and not self.patience:
            raise ValueError("delta is for patience, the number of evaluations without an improvement: give both")

    def column(self, validated: bool) -> str:
        """Return the column by which models are chosen; ``validated``: whether there are validation samples."""
        default = f"{VALIDATED}objective" if validated else "objective"
        return {None: default, VALIDATION: f"{VALIDATED}objective", TEST: "test_objective"}.get(self.by, self.by or "")

    @property
    def by_test(self) -> bool:
        """True if the objective of test samples is what models are chosen by."""
        return self.by in (TEST, "test_objective")

    def check_roles(self, role: Role, validation: Role | None) -> None:
        """Raise UserError where models would be chosen by samples that are not there, or by test samples unasked."""
        keep = "keep some with data.validation = 0.1"
        if validation is None and (self.by or "").startswith(VALIDATION):
            raise UserError(f"stop.by = {toml_value(self.by)} needs validation samples, and there are none: {keep}")
        if self.by == TEST and role.name != TEST:
            raise UserError('stop.by = "test" needs test samples, and there are none: keep some with data.test = 0.1')
        if self.accuracy and validation is None and role.name == TEST and self.by != TEST:
            raise UserError(
                f"stop.accuracy = {self.accuracy} would look at test samples, which are to report, not to choose by: "
                f'keep validation samples with data.validation = 0.1, or say stop.by = "test"'
            )

    def reason(self, history: Mapping[str, Sequence[float]], m: int, n: int, role: str = TEST) -> str | None:
        """Return why to stop after these columns of evaluated rounds, or None; ``role`` is that of the accuracy."""
        f, errors = history["objective"], history["grad_norm_sq"]
        if reason := self.small_gradient(errors[0], errors[-1], m):
            return reason
        if self.objective_gap and self.optimum is not None and f[-1] - self.optimum <= self.objective_gap:
            return f"objective_gap: f − f* {f[-1] - self.optimum:.3g} <= {self.objective_gap:.3g}"
        if self.accuracy:
            accuracy = history.get(f"{VALIDATED}accuracy" if role == VALIDATION else "accuracy", [0.0])[-1]
            if accuracy >= self.accuracy:
                return f"accuracy: {accuracy:.4g} of {role} samples >= {self.accuracy:.4g}"
        if self.variance and len(f) >= 4:
            bound = self.variance * n / (1 + f[-1])
            spread = float(np.var(f[-4:], ddof=1))
            if spread <= bound:
                return f"variance: that of the last four f {spread:.3g} <= {bound:.3g}"
        if self.rising and len(f) >= 4 and f[-1] > max(f[-4:-1]) and errors[-1] > max(errors[-4:-1]):
            return "rising: f and ‖∇f‖² are above those of the three rounds before"
        if self.seconds and history["elapsed_seconds"][-1] >= self.seconds:
            return f"seconds: elapsed time {history['elapsed_seconds'][-1]:.3g} s >= {self.seconds:.3g} s"
        if self.simulated_seconds and history["simulated_seconds"][-1] >= self.simulated_seconds:
            simulated = history["simulated_seconds"][-1]
            return f"simulated_seconds: simulated time {simulated:.3g} s >= {self.simulated_seconds:.3g} s"
        return None

    def small_gradient(self, first: float, last: float, m: int) -> str | None:
        """Return why ``last``, the newest ‖∇f‖² after the ``first``, is small enough to stop, or None."""
        scale, name = (1, "‖∇f‖²") if self.gradient_scale == "1" else (m * m, "‖∇f‖²/m²")
        error = last / scale
        bound = self.gradient
        origin = ""
        if self.gradient_relative and self.gradient_relative * (first / scale) < bound:
            bound = self.gradient_relative * (first / scale)
            origin = f", {self.gradient_relative:.3g} of round 0"
        if self.gradient and error <= bound:
            return f"gradient: {name} {error:.3g} <= {bound:.3g}{origin}"
        return None


class Patience:
    """Evaluations since the ``column`` last improved by more than stop.delta; a run stops after stop.patience of them.

    ``sign`` is 1 if more of the column is better, −1 if less is.
    """

    def __init__(self, stop: StopRules, column: str, sign: int) -> None:
        self.stop = stop
        self.name = column
        self.sign = sign
        self.best = -math.inf
        self.waited = 0

    def add(self, number: float) -> str | None:
        """Return why to stop after an evaluation with this number, or None."""
        value = self.sign * number
        if value > self.best + self.stop.delta:
            self.best, self.waited = value, 0
            return None
        self.waited += 1
        if self.waited < self.stop.patience:
            return None
        more = f" by more than {self.stop.delta:.3g}" if self.stop.delta else ""
        return (
            f"patience: {self.waited} evaluations without a {self.name} better than {self.sign * self.best:.4g}{more}"
        )


def ran_out(reason: str) -> bool:
    """Return whether a run that ended for this reason ran out of rounds or time, rather than converged."""
    return reason.partition(":")[0] in BUDGETS
