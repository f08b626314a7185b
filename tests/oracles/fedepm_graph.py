"""FedEPM on a graph without noise: an elastic net over each neighbourhood, node by node and number by number.

Source: docs/studies/graph-methods.md: alternating minimisation of Σ f_i(w_i) + Σ_ij W_ij φ(w_i − x_j), with the steps
of S. Zhou and G. Y. Li, "Exact penalty method for federated learning", 2022, arXiv 2208.11231, Algorithm 2. z_i⁰ = 0.
"""

import numpy as np

from .fedepm import nearest, penalties, trained
from .graphs import matrices
from .problems import zeros


def run(clients, selections, graph, *, lam=None, eta=None, **options):
    m = len(clients)
    penalty = penalties(lam, eta, m, min(map(len, selections)))
    w = zeros(clients)
    z = zeros(clients)
    x = zeros(clients)
    yield np.array(x)
    for t, (W, chosen) in enumerate(zip(matrices(graph, m, len(selections)), selections, strict=True)):
        for i in chosen:
            z[i] = w[i] = trained(clients[i], w[i], W[i] @ x, t, W[i], x, penalty, **options)
        x = [nearest(W[j], z, penalty, 0.0, z[j]) for j in range(m)]
        yield np.array(x)
