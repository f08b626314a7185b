"""Numbers that only the tables of FedADMM show: when a run meets the tolerance of (5.1)."""

import numpy as np

from mpifed import Result


def tolerance(result: Result) -> float:
    """The largest ‖∇f‖² that meets the stop rule, with the run's own m and d.  Source: fedadmm, (5.1).

    5e-4 n/d as printed; c n/d in the program of 2022, c = 5e-5 for linear and 1e-5 for logistic regression: the least
    of the two that is not below stop.gradient, which stands for the largest m. The program of 2023, which alone has
    gradient_relative, tests ‖∇f‖²/m² against c n/(m d), c = 2e-3 or 5e-7: min{c n m/d, 0.2 ‖∇f(x⁰)‖²}.
    """
    if result.x is None:
        return 0.0
    m, n = result.m, len(result.x)
    d = float(np.sum(result.clients["samples"]))
    linear = result.config["problem"]["name"] == "least-squares"
    stop = result.config["stop"]
    if stop["gradient_relative"]:
        return min((2e-3 if linear else 5e-7) * n * m / d, 0.2 * float(result.rounds["grad_norm_sq"][0]))
    known = [(5e-5 if linear else 1e-5) * n / d, 5e-4 * n / d]
    return min((bound for bound in known if bound > 0.99 * stop["gradient"]), default=stop["gradient"])


def reached(result: Result) -> int:
    """The first round with ‖∇f‖² at most ``tolerance``, or the last round.  Source: fedadmm, (5.1)."""
    met = np.asarray(result.rounds["grad_norm_sq"]) <= tolerance(result)
    return int(np.argmax(met)) if met.any() else len(met) - 1


def rounds_to_tolerance(result: Result) -> float:
    """CR: rounds until (5.1) holds with the run's own m and d, or all rounds.  Source: fedadmm, Figure 4."""
    return float(result.rounds["round"][reached(result)])


def seconds_to_tolerance(result: Result) -> float:
    """Elapsed seconds until (5.1) holds with the run's own m and d, or until the end.  Source: fedadmm, Figure 4."""
    return float(result.rounds["elapsed_seconds"][reached(result)])


def rounds_left(result: Result) -> float:
    """The round limit minus the rounds run: 0 if the run hit the limit.  Source: fedadmm, section 5.4 a), b)."""
    return float(result.config["rounds"] - result.cr)


MEASURES = {
    "rounds_to_tolerance": rounds_to_tolerance,
    "seconds_to_tolerance": seconds_to_tolerance,
    "rounds_left": rounds_left,
}
