"""Gradient tracking.

Source: G. Qu, N. Li, "Harnessing smoothness to accelerate distributed optimization", 2016, arXiv 1605.07112:
x_i(t+1) = Σ_j w_ij x_j(t) − η s_i(t);
s_i(t+1) = Σ_j w_ij s_j(t) + ∇f_i(x_i(t+1)) − ∇f_i(x_i(t));  s_i(0) = ∇f_i(x_i(0)).
In the other order x_i(t+1) = Σ_j w_ij (x_j(t) − η s_j(t)).
"""

import numpy as np

from .graphs import matrices
from .problems import gradients


def run(clients, rounds, graph, *, gamma, order="combine-adapt"):
    X = np.zeros((len(clients), clients[0].n))
    G = S = gradients(clients, X)
    yield X
    for W in matrices(graph, len(clients), rounds):
        X = W @ (X - gamma * S) if order == "adapt-combine" else W @ X - gamma * S
        before, G = G, gradients(clients, X)
        S = W @ S + G - before
        yield X
