"""What FedEPM's benchmarks need beside mpifed."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mpifed.core.errors import UserError
from mpifed.results.result import Result, load


def lct_over_sfedavg(result: Result) -> float:
    """LCT / LCT of SFedAvg in the same cell and draw, which leaves the machine's speed out, not its load; else nan.

    Source: fedepm, Table I, its columns divided by that of SFedAvg.
    """
    if result.path is None:
        return float("nan")
    path, name = Path(result.path), result.config["algorithm"]["name"]
    try:
        return result.lct / load(path.with_name(path.name.replace(f"-{name}-", "-sfedavg-"))).lct
    except UserError:
        return float("nan")


def tct_with_evaluation(result: Result) -> float:
    """TCT + Σ evaluate_seconds: the time with that of f and all gradients, by which runs stop, in every round.

    Source: fedepm, section VII.C; the authors' program takes its time from the first round to the end, evaluation included.
    """
    return result.tct + float(np.nansum(result.rounds["evaluate_seconds"]))


def epsilon_at_steps(result: Result) -> float:
    """The ε of an upload that its noise gives at the steps taken, 2‖g_i‖₁ taken for the sensitivity: the largest of all clients.

    noise = "released": ε max d_i for FedEPM's steps d_i/μ_i, ε max γ_i μ_i for SFedAvg's γ_i in round 1; else ε as named.
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
