"""Decentralised gradient descent.

Source: A. Nedić, A. Ozdaglar, "Distributed subgradient methods for multi-agent optimization", 2009,
doi:10.1109/TAC.2008.2009515, with a constant step: x_i⁺ = Σ_j W_ij x_j − γ∇f_i(x_i). "adapt-combine": diffusion of
A. H. Sayed, arXiv 1205.4220, x_i⁺ = Σ_j W_ij φ_j with φ_j = x_j after k0 gradient steps.
"""

import numpy as np

from .graphs import default_step, matrices


def run(clients, rounds, graph, *, gamma=None, order="combine-adapt", k0=1):
    m, n = len(clients), clients[0].n
    gamma = gamma or default_step(clients, graph)
    X = np.zeros((m, n))
    yield X
    for W in matrices(graph, m, rounds):
        new = np.zeros((m, n))
        if order == "combine-adapt":
            for i in range(m):
                new[i] = sum(W[i, j] * X[j] for j in range(m)) - gamma * clients[i].gradient(X[i])
        else:
            stepped = X.copy()
            for i in range(m):
                for _ in range(k0):
                    stepped[i] = stepped[i] - gamma * clients[i].gradient(stepped[i])
            for i in range(m):
                new[i] = sum(W[i, j] * stepped[j] for j in range(m))
        X = new
        yield X
