"""SISA and PISA with full gradients.

Source: S. Zhou, O. Wang, Z. Luo, Y. Zhu, G. Y. Li, "Preconditioned inexact stochastic ADMM for deep models", 2025,
arXiv 2502.10784, as the authors' program has it, with weights 1/m, without weight decay and corrections of the moments.
Clients that do not take part leave their last w_i + π_i/σ_i with the server.
"""

import numpy as np

from .problems import zeros


def run(clients, selections, *, sigma=None, gamma=1.0, preconditioner="second-moment", rho=1.0, beta=0.9):
    first = [client.lipschitz if sigma is None else sigma for client in clients]
    pi = zeros(clients)
    moment = zeros(clients)
    own = zeros(clients)
    w = np.zeros(clients[0].n)
    yield w
    for k, chosen in enumerate(selections):
        for i in chosen:
            penalty = first[i] / gamma ** (k + 1)
            u = pi[i] + clients[i].gradient(w)
            moment[i] = beta * moment[i] + (1 - beta) * u**2
            steep = {"second-moment": np.sqrt(moment[i]), "smoothness": clients[i].lipschitz * np.ones(len(w))}
            wi = w - np.linalg.solve(np.diag(penalty + rho * steep[preconditioner]), u)
            pi[i] = pi[i] + penalty * (wi - w)
            own[i] = wi + pi[i] / penalty
        w = sum(s * v for s, v in zip(first, own, strict=True)) / sum(first)
        yield w
