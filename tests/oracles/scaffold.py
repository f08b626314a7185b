"""SCAFFOLD with full gradients: local steps corrected by control variates, renewed by option II.

Source: S. P. Karimireddy et al., "SCAFFOLD: Stochastic controlled averaging for federated learning", 2020, arXiv
1910.06378, Algorithm 1. Where the local step varies within a round, K η_l of option II is the sum of the steps taken.
"""

import numpy as np

from .problems import zeros
from .step_sizes import LOG2, step_size


def run(clients, selections, *, k0=5, step=LOG2, server_lr=1.0, epochs=0):
    m = len(clients)
    iterations = epochs or k0
    x = np.zeros(clients[0].n)
    c = np.zeros(clients[0].n)
    own = zeros(clients)  # c_i
    yield x
    for t, chosen in enumerate(selections):
        model_change, variate_change = [], []
        for i in chosen:
            y, length = x, 0.0
            for k in range(t * iterations, (t + 1) * iterations):
                gamma = step_size(step, k, k0, clients[i].d)
                y = y - gamma * (clients[i].gradient(y) - own[i] + c)
                length += gamma
            renewed = own[i] - c + (x - y) / length  # option II
            model_change.append(y - x)
            variate_change.append(renewed - own[i])
            own[i] = renewed
        x = x + server_lr * sum(model_change) / len(chosen)
        c = c + len(chosen) / m * (sum(variate_change) / len(chosen))
        yield x
