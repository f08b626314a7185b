"""FedProx with full gradients: every local iteration is a few gradient steps on f_i(w) + (mu/2)‖w − x‖².

Source: T. Li et al., "Federated optimization in heterogeneous networks", 2020, arXiv 1812.06127. Followed here: as
compared in S. Zhou and G. Y. Li, "FedGiA", 2022, arXiv 2205.01438, section V.D; the descent is (3.17) of FedADMM
(arXiv 2204.10607) with its sign put right. It begins at x in the first iteration of a round, at w_i in the others.
"""

from __future__ import annotations

import numpy as np

from .problems import trajectory, zeros
from .step_sizes import LOG2, step_size


def run(clients, selections, *, k0=5, step=LOG2, scale="1", aggregate="chosen", epochs=0, mu=1e-4, inner=5):
    m = len(clients)
    factor = 1.0 if scale == "1" else 1 / m
    iterations = epochs or k0
    x = np.zeros(clients[0].n)
    w = zeros(clients)
    models = [x]
    for t, chosen in enumerate(selections):
        for i in chosen:
            w[i] = x
            for k in range(t * iterations, (t + 1) * iterations):
                gamma = step_size(step, k, k0, clients[i].d)
                v = w[i]
                for _ in range(inner):
                    v = v - gamma * (factor * clients[i].gradient(v) + mu * (v - x))
                w[i] = v
        averaged = range(m) if aggregate == "all" else chosen
        x = sum(w[i] for i in averaged) / len(averaged)
        models.append(x)
    return trajectory(clients, models)
