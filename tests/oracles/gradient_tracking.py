"""Gradient tracking.

Source: G. Qu, N. Li, "Harnessing smoothness to accelerate distributed optimization", 2016, arXiv 1605.07112:
x_i(t+1) = Σ_j w_ij x_j(t) − η s_i(t);
s_i(t+1) = Σ_j w_ij s_j(t) + ∇f_i(x_i(t+1)) − ∇f_i(x_i(t));  s_i(0) = ∇f_i(x_i(0)).
"""

import numpy as np

from .graphs import matrices


def run(clients, rounds, graph, *, gamma):
    m, n = len(clients), clients[0].n
    X = np.zeros((m, n))
    S = np.array([client.gradient(x) for client, x in zip(clients, X, strict=True)])
    yield X
    for W in matrices(graph, m, rounds):
        new = np.array([sum(W[i, j] * X[j] for j in range(m)) - gamma * S[i] for i in range(m)])
        S = np.array(
            [
                sum(W[i, j] * S[j] for j in range(m)) + clients[i].gradient(new[i]) - clients[i].gradient(X[i])
                for i in range(m)
            ]
        )
        X = new
        yield X
