"""Stop rules: the conditions under which a run ends."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

import numpy as np
from msgspec import Meta

from mpifed.core.component import StudyTable
from mpifed.core.roles import TEST

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
        float,
        Meta(ge=0, le=1, description="accuracy of the server's model at least, of test samples if any client has some"),
    ] = 0.0
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

    def reason(self, history: Mapping[str, Sequence[float]], m: int, n: int, role: str = TEST) -> str | None:
        """Return why to stop after these columns of evaluated rounds, or None; accuracies are of ``role`` samples."""
        f, errors = history["objective"], history["grad_norm_sq"]
        if reason := self.small_gradient(errors[0], errors[-1], m):
            return reason
        if self.objective_gap and self.optimum is not None and f[-1] - self.optimum <= self.objective_gap:
            return f"objective_gap: f − f* {f[-1] - self.optimum:.3g} <= {self.objective_gap:.3g}"
        if self.accuracy and history.get("accuracy", [0.0])[-1] >= self.accuracy:
            of = f" of {role} samples" if role != TEST else ""
            return f"accuracy: {history['accuracy'][-1]:.4g}{of} >= {self.accuracy:.4g}"
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


def ran_out(reason: str) -> bool:
    """Return whether a run that ended for this reason ran out of rounds or time, rather than converged."""
    return reason.partition(":")[0] in BUDGETS
