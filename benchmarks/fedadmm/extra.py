"""What FedADMM's benchmarks need beside mpifed: (5.1) with every run's own m and d, and a step that goes with d/m."""

from __future__ import annotations

import numpy as np

from mpifed.algorithms import fedavg, fedprox
from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.results.result import Result


class FedAvg(fedavg.FedAvg):
    """FedAvg with γ_k = a/(m log2(k + 2)): with a = 0.5 d this is 0.5 d/m whatever m.  Source: fedadmm, section 5.3."""

    def iterate(self, f: Local, w: Array, x: Array, gamma: Array | float) -> Array:
        """(3.16) with γ/m in the place of γ."""
        return super().iterate(f, w, x, gamma / f.m)


class FedProx(fedprox.FedProx):
    """FedProx with γ_k = a/(m log2(k + 2)): with a = 0.5 d this is 0.5 d/m whatever m.  Source: fedadmm, section 5.3."""

    def iterate(self, f: Local, w: Array, x: Array, gamma: Array | float) -> Array:
        """(3.17) with γ/m in the place of γ."""
        return super().iterate(f, w, x, gamma / f.m)


def tolerance(result: Result) -> float:
    """What ‖∇f‖² must not exceed: 5 n 1e-4/d as printed; c n m/d and 0.2 of its start in the program.

    The program tests ‖∇f‖²/m² against c n/(m d), c = 2e-3 (linear) or 5e-7 (logistic regression); gradient_relative, which
    only the program has, tells which of the two it is.  Source: fedadmm, (5.1).
    """
    if result.x is None:
        return 0.0
    m, n, d = result.m, len(result.x), float(np.sum(result.clients["samples"]))
    if not result.config["stop"]["gradient_relative"]:
        return 5e-4 * n / d
    c = 2e-3 if result.config["problem"]["name"] == "least-squares" else 5e-7
    return min(c * n * m / d, 0.2 * float(result.rounds["grad_norm_sq"][0]))


def reached(result: Result) -> int:
    """The first round with ‖∇f‖² at most ``tolerance``, else the last.  Source: fedadmm, (5.1)."""
    fine = np.asarray(result.rounds["grad_norm_sq"]) <= tolerance(result)
    return int(np.argmax(fine)) if fine.any() else len(fine) - 1


def rounds_to_tolerance(result: Result) -> float:
    """CR: rounds until (5.1) holds with the run's own m and d, or all of them.  Source: fedadmm, Figure 4."""
    return float(result.rounds["round"][reached(result)])


def seconds_to_tolerance(result: Result) -> float:
    """Elapsed seconds until (5.1) holds with the run's own m and d, or all of them.  Source: fedadmm, Figure 4."""
    return float(result.rounds["elapsed_seconds"][reached(result)])


def rounds_left(result: Result) -> float:
    """The most rounds minus those done: 0 where a run reached the maximum of CR.  Source: fedadmm, section 5.4 a), b)."""
    return float(result.config["rounds"] - result.cr)


MEASURES = {
    "rounds_to_tolerance": rounds_to_tolerance,
    "seconds_to_tolerance": seconds_to_tolerance,
    "rounds_left": rounds_left,
}
