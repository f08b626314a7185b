"""Numbers that only the tables of FedEPM show: LCT relative to SFedAvg, time with evaluation, and the effective ε."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mpifed import Result, UserError, load


def lct_over_sfedavg(result: Result) -> float:
    """LCT divided by the LCT of SFedAvg in the same cell with the same seed; nan if that run is missing.

    The ratio cancels the speed of the machine, but not its load. Source: fedepm, Table I, columns divided by SFedAvg's.
    """
    if result.path is None:
        return float("nan")
    path, name = Path(result.path), result.config["algorithm"]["name"]
    try:
        return result.lct / load(path.with_name(path.name.replace(f"-{name}-", "-sfedavg-"))).lct
    except UserError:
        return float("nan")


def tct_with_evaluation(result: Result) -> float:
    """TCT + Σ evaluate_seconds: the time including the evaluation of f and all gradients, which the stop rule needs.

    Source: fedepm, section VII.C; the authors' program measures from the first round to the end, evaluation included.
    """
    return result.tct + float(np.nansum(result.rounds["evaluate_seconds"]))


def epsilon_at_steps(result: Result) -> float:
    """The ε that the noise of an upload provides with the step sizes used: the largest over the clients.

    2‖g_i‖₁ is taken as the sensitivity. With noise = "released" it is ε max d_i for FedEPM's steps d_i/μ_i, and
    ε max γ_i μ_i for SFedAvg's γ_i in round 1. Otherwise it is the configured ε.
    Source: fedepm (27), (38), (39) and docs/errata.md.
    """
    algorithm, largest = result.config["algorithm"], float(np.max(result.clients["samples"]))
    if algorithm["noise"] == "none":
        return float("nan")
    if algorithm["noise"] != "released":
        return float(algorithm["epsilon"])
    if algorithm["name"] == "fedepm":
        return float(algorithm["epsilon"]) * (largest if algorithm["step_scale"] == "samples" else 1)
    gamma = algorithm["step"]["a"] * largest / np.sqrt(2 * algorithm["k0"])
    return float(algorithm["epsilon"] * gamma * 0.05 * 1.001 ** algorithm["k0"])


MEASURES = {
    "lct_over_sfedavg": lct_over_sfedavg,
    "tct_with_evaluation": tct_with_evaluation,
    "epsilon_at_steps": epsilon_at_steps,
}
