"""Step sizes γ of iteration k, counted over the whole run."""

import math

LOG2 = {"name": "log2", "a": 0.01}
SQRT_SAMPLES = {"name": "sqrt-samples", "a": 2.0}


def step_size(step, k, k0, d):
    """γ_k, or γ_i of a client with d samples."""
    name, a = step["name"], step["a"]
    if name == "constant":
        return a
    if name == "log2":  # FedGiA, section V.D
        return a / math.log2(k + 2)
    if name == "sqrt-samples":  # FedEPM (38)
        return a * d / math.sqrt(2 * k0 + k // k0)
    raise ValueError(name)
