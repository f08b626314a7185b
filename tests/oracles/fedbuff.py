"""FedBuff with full gradients: the server adds the mean of the changes that have arrived, old ones scaled down.

Source: J. Nguyen et al., "Federated learning with buffered asynchronous aggregation", 2022, arXiv 2106.06639, from
public accounts of it. In synchronous rounds no change is old, so none is scaled down; ``asynchronous_admm`` has
the others.
"""

from __future__ import annotations

import numpy as np

from .problems import trajectory


def run(clients, selections, *, k0=5, lr=0.01, server_lr=1.0, epochs=0):
    models = [np.zeros(clients[0].n)]
    for chosen in selections:
        buffer = np.zeros(clients[0].n)
        for i in chosen:
            w = x = models[-1]
            for _ in range(epochs or k0):
                w = w - lr * clients[i].gradient(w)
            buffer += w - x
        models.append(models[-1] + server_lr * buffer / len(chosen))
    return trajectory(clients, models)
