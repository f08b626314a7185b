"""FedADMM-InSa with full gradients: relative inexactness, and penalties that adapt themselves.

Source: Y. Song, Z. Wang, E. Zuazua, "FedADMM-InSa: An inexact and self-adaptive ADMM for federated learning", 2024,
arXiv 2402.13989: the server as in the authors' program, the clients as in two public copies of it, with weights 1/m;
steps are (3.12) of FedADMM, arXiv 2204.10607.
"""

import numpy as np

from .problems import zeros


def run(clients, selections, *, r0=0.2, mu=5.0, tau=2.0, memory=0.01, c=0.01, inner_max=10):
    n = clients[0].n
    beta = [r0 * client.lipschitz for client in clients]
    sent = list(beta)
    pi, own = zeros(clients), zeros(clients)
    w, steps = np.zeros(n), 0.0
    yield w, {"inner_steps": steps}
    for chosen in selections:
        for i in chosen:
            theta = 0.999 * np.sqrt(2) / (np.sqrt(2) + np.sqrt(beta[i] / c))
            before, v = own[i], w
            first = np.linalg.norm(error(clients[i], pi[i], beta[i], w, w))
            for _ in range(inner_max):
                v = v - error(clients[i], pi[i], beta[i], w, v) / (clients[i].lipschitz + beta[i])
                steps += 1
                if np.linalg.norm(error(clients[i], pi[i], beta[i], w, v)) <= theta * first:
                    break
            own[i] = v
            pi[i] = pi[i] + beta[i] * (v - w)
            sent[i] = beta[i]
            p, d = beta[i] * np.linalg.norm(v - before), np.linalg.norm(v - w)
            if p < d / mu:
                beta[i] = tau * beta[i]
            elif d < p / mu:
                beta[i] = beta[i] / tau
        mean = sum(b * v + q for b, v, q in zip(sent, own, pi, strict=True)) / sum(sent)
        w = (mean + memory * w) / (1 + memory)
        yield w, {"inner_steps": steps}


def error(client, pi, beta, w, v):
    """e_i(v), the gradient of the augmented Lagrangian."""
    return client.gradient(v) + pi + beta * (v - w)
