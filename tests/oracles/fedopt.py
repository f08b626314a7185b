"""FedOpt with full gradients: the server's optimisers, entry by entry, on the mean step of FedAvg's clients.

Source: S. J. Reddi et al., "Adaptive federated optimization", 2021, arXiv 2003.00295, Algorithm 2 (FedAdagrad, FedAdam,
FedYogi); D. Jhunjhunwala, S. Wang and G. Joshi, "FedExP: Speeding up federated averaging via extrapolation", 2023,
arXiv 2301.09604, Algorithm 1; momentum as in T.-M. H. Hsu et al., 2019, arXiv 1909.06335, section 4.
"""

import math

import numpy as np

from .step_sizes import LOG2, step_size


def run(clients, selections, *, server, k0=5, step=LOG2, scale="1", epochs=0):
    factor = 1.0 if scale == "1" else 1 / len(clients)
    iterations = epochs or k0
    n = clients[0].n
    x, u = np.zeros(n), np.zeros(n)
    v = np.full(n, server["tau"] ** 2 if "tau" in server else 0.0)
    adaptive = server["name"] != "fedexp"
    yield x, {} if adaptive else {"server_step": 1.0}
    for t, chosen in enumerate(selections):
        steps = []
        for i in chosen:
            w = x
            for k in range(t * iterations, (t + 1) * iterations):
                w = w - step_size(step, k, k0, clients[i].d) * factor * clients[i].gradient(w)
            steps.append(w - x)
        delta = sum(steps) / len(chosen)
        moved = np.empty(n)
        if server["name"] == "fedexp":
            diversity = sum(s @ s for s in steps) / (2 * len(chosen) * (delta @ delta + server["eps"]))
            stretched = max(1.0, diversity)
            moved = stretched * delta
        for j in range(n):
            if server["name"] == "momentum":
                u[j] = server["beta"] * u[j] + delta[j]
                moved[j] = server["lr"] * u[j]
            elif adaptive:
                u[j] = server["beta1"] * u[j] + (1 - server["beta1"]) * delta[j]
                v[j] = second_moment(server, v[j], delta[j] ** 2)
                moved[j] = server["lr"] * u[j] / (math.sqrt(v[j]) + server["tau"])
        x = x + moved
        yield x, {} if adaptive else {"server_step": stretched}


def second_moment(server, v, square):
    if server["name"] == "adagrad":
        return v + square
    if server["name"] == "adam":
        return server["beta2"] * v + (1 - server["beta2"]) * square
    return v - (1 - server["beta2"]) * square * math.copysign(1.0, v - square)
