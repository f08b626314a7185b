"""Aug-DGM.

Source: J. Xu, S. Zhu, Y. C. Soh, L. Xie, "Augmented distributed gradient methods for multi-agent optimization under
uncoordinated constant stepsizes", 2015, doi 10.1109/CDC.2015.7402509, with one step size.
"""

import numpy as np

from .graphs import matrices
from .problems import gradients


def run(clients, rounds, graph, *, gamma):
    X = np.zeros((len(clients), clients[0].n))
    G = S = gradients(clients, X)
    yield X
    for W in matrices(graph, len(clients), rounds):
        X = W @ (X - gamma * S)
        before, G = G, gradients(clients, X)
        S = W @ (S + G - before)
        yield X
