"""FedAvg with full gradients.

Source: B. McMahan et al., "Communication-efficient learning of deep networks from decentralized data", 2017,
arXiv 1602.05629. Followed here: Algorithm 2 of S. Zhou and G. Y. Li, "Federated learning via inexact ADMM", 2022,
arXiv 2204.10607, equations (3.14)–(3.16), the factor of the gradient being 1 or 1/m (``scale``), and the step γ_k of
FedGiA (arXiv 2205.01438), section V.D.

With full batches a local epoch is one gradient step, so ``epochs`` > 0 stands in place of k0.
"""

from __future__ import annotations

import numpy as np

from .problems import trajectory, zeros
from .step_sizes import LOG2, step_size


def run(clients, selections, *, k0=5, step=LOG2, scale="1", aggregate="chosen", epochs=0):
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
                w[i] = w[i] - gamma * factor * clients[i].gradient(w[i])  # (3.16)
        averaged = range(m) if aggregate == "all" else chosen
        x = sum(w[i] for i in averaged) / len(averaged)  # (3.14), (3.15)
        models.append(x)
    return trajectory(clients, models)
