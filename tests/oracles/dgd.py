"""Decentralised gradient descent.

Source: A. Nedić, A. Ozdaglar, "Distributed subgradient methods for multi-agent optimization", 2009,
doi:10.1109/TAC.2008.2009515, with a constant step: x_i⁺ = Σ_j W_ij x_j − γ∇f_i(x_i). "adapt-combine": diffusion of
A. H. Sayed, arXiv 1205.4220, x_i⁺ = Σ_j W_ij φ_j with φ_j = x_j after k0 gradient steps.
"""

import numpy as np

from .graphs import default_step, matrices
from .problems import gradients


def run(clients, rounds, graph, *, gamma=None, order="combine-adapt", k0=1):
    gamma = gamma or default_step(clients, graph)
    X = np.zeros((len(clients), clients[0].n))
    yield X
    for W in matrices(graph, len(clients), rounds):
        if order == "combine-adapt":
            X = W @ X - gamma * gradients(clients, X)
        else:
            for _ in range(k0):
                X = X - gamma * gradients(clients, X)
            X = W @ X
        yield X
