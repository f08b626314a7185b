"""FedGiA on a graph as ADMM: node j keeps a copy y_j of the server's model, and every edge to a copy has a multiplier.

Source: docs/studies/graph-methods.md: minimise (1/m) Σ f_i(x_i) subject to x_i = y_j wherever W_ij > 0, with the
penalty σW_ij, in the order y, x, π of S. Zhou and G. Y. Li, "FedGiA", 2022, arXiv 2205.01438. σ = t max r_i/m;
x⁰ = π⁰ = 0.
"""

import numpy as np

from .fedgia import metric, trained
from .graphs import matrices
from .problems import zeros


def run(clients, selections, graph, *, k0=10, H="diagonal", t=1.0, average="tracked"):
    m, n = len(clients), clients[0].n
    W = matrices(graph, m, 1)[0]
    sigma = t * max(client.lipschitz for client in clients) / m
    x = zeros(clients)
    y = zeros(clients)
    given = zeros(clients)
    pi = np.zeros((m, m, n))
    yield np.array(given)
    for chosen in selections:
        for i in range(m):
            g, total = clients[i].gradient(given[i]) / m, pi[i].sum(axis=0)
            if i in chosen:
                x[i], new = trained(given[i], g, total, metric(clients[i], H) / m, sigma, k0)  # (12), (13)
            else:
                x[i], new = given[i], -g  # (15), (16)
            for j in range(m):
                apart = 0 if average == "plain" else sigma * (given[i] - y[j])
                pi[i, j] = pi[i, j] + W[i, j] * (new - total + apart)
        y = [sum(W[i, j] * x[i] + pi[i, j] / sigma for i in range(m)) for j in range(m)]
        given = [sum(W[i, j] * y[j] for j in range(m)) for i in range(m)]
        yield np.array(given)
