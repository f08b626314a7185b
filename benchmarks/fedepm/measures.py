"""Numbers that only the tables of FedEPM show: gradients of a round, time with evaluation, the ε of an upload."""

import numpy as np

from mpifed import Array, Result
from mpifed.experiment import config


def gradients(result: Result) -> float:
    """Passes over its samples that a selected client makes for gradients in a round, a count from the settings alone.

    Source: fedepm, section IV.B, the computational complexity that Table I shows in seconds.
    """
    passes = config.experiment(result.config).algorithm.sample_gradients(np.ones(1))
    return float("nan") if passes is None else float(passes[0])


def tct_with_evaluation(result: Result) -> float:
    """TCT + Σ evaluate_seconds: the time including the evaluation of f and all gradients, which the stop rule needs.

    Source: fedepm, section VII.C; the authors' program measures from the first round to the end, evaluation included.
    """
    return result.tct + float(np.nansum(result.rounds["evaluate_seconds"]))


def epsilon_of_upload(result: Result) -> float:
    """The ε of the last upload, were 2‖g_i‖₁ the sensitivity of a gradient: the largest over the clients.

    FedEPM: all steps so far move w_i, by the recursion of ``Clipped.grow``, and the noise has the scale of one step
    1/μ_i (released) or d_i/μ_i (matched). SFedAvg: w_i starts at x, so k0 steps γ_i count, as if their gradients were
    alike, and the noise has the scale of 1/μ_i or of one γ_i. With clipped gradients it is the configured ε, and a
    guarantee. Source: fedepm (20), (27), (35), (39) and docs/studies/errata.md.
    """
    algorithm, d = result.config["algorithm"], np.asarray(result.clients["samples"], float)
    if algorithm["noise"] == "none":
        return float("nan")
    if algorithm["noise"] == "clipped":
        return float(algorithm["epsilon"])
    released = algorithm["noise"] == "released"
    if algorithm["name"] != "fedepm":
        gamma = algorithm["step"]["a"] * d.max() / np.sqrt(2 * algorithm["k0"])
        mu = 0.05 * 1.001 ** algorithm["k0"]
        return float(algorithm["epsilon"] * algorithm["k0"] * (gamma * mu if released else 1))
    return float(algorithm["epsilon"] * np.max(moved(result, d, 1.0 if released else d)))


def moved(result: Result, d: Array, scale: Array | float) -> Array:
    """How far a gradient of 1 more moves w_i until its last upload, over ``scale``/μ_i: (m,)."""
    algorithm, k0 = result.config["algorithm"], result.config["algorithm"]["k0"]
    over = d if algorithm["step_scale"] == "samples" else np.ones(len(d))
    eta = algorithm.get("eta") or (0.02 * result.m + 1) * (result.config["selection"].get("share", 1.0) + 0.1) * 1e-5
    reach, last = np.zeros(len(d)), np.zeros(len(d))
    for round in range(1, result.cr + 1):
        own = np.zeros(len(d), bool)
        own[result.selected(round)] = True
        grown = reach.copy()
        for j in range(k0):
            mu = algorithm["mu0"] * algorithm["alpha"] ** (k0 * (round - 1) + j + 1)
            grown = (mu / over * grown + 1) / (eta + mu / over)
        reach = np.where(own, grown, reach)
        last = np.where(own, grown * mu, last)
    return last / scale


MEASURES = {
    "gradients": gradients,
    "tct_with_evaluation": tct_with_evaluation,
    "epsilon_of_upload": epsilon_of_upload,
}
