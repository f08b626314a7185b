"""SFedAvg without noise: FedAvg with the step of FedEPM (38), averaged over a set of clients.

Source: S. Zhou and G. Y. Li, "Exact penalty method for federated learning", 2022, arXiv 2208.11231, Algorithm 3,
equations (34), (35), (37), (38). ``average``: over the set that trained, or as printed, the last uploads of the new
set before it trains; z_i⁰ = 0.
"""

import numpy as np

from .problems import zeros
from .step_sizes import SQRT_SAMPLES, step_size


def run(clients, selections, *, k0=12, step=SQRT_SAMPLES, average="trained"):
    x = np.zeros(clients[0].n)
    z = zeros(clients)
    yield x
    for t, chosen in enumerate(selections):
        if average == "new":
            x = sum(z[i] for i in chosen) / len(chosen)  # (34)
        for i in chosen:
            w = x
            for k in range(t * k0, (t + 1) * k0):
                w = w - step_size(step, k, k0, clients[i].d) * clients[i].gradient(w)  # (35)
            z[i] = w  # (37)
        if average == "trained":
            x = sum(z[i] for i in chosen) / len(chosen)
        yield x
