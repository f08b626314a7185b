"""SFedProx without noise: every local iteration is a few gradient steps on f_i(w) + (mu/2)‖w − x‖².

Source: S. Zhou and G. Y. Li, "Exact penalty method for federated learning", 2022, arXiv 2208.11231, Algorithms 3 and 4,
equations (34), (36)–(38). ``average``: over the set that trained, or as printed, the last uploads of the new set before
it trains; z_i⁰ = 0.
"""

import numpy as np

from .problems import zeros
from .step_sizes import SQRT_SAMPLES, step_size


def run(clients, selections, *, k0=12, step=SQRT_SAMPLES, average="trained", mu=1e-5, inner=3):
    x = np.zeros(clients[0].n)
    z = zeros(clients)
    yield x
    for t, chosen in enumerate(selections):
        if average == "new":
            x = sum(z[i] for i in chosen) / len(chosen)  # (34)
        for i in chosen:
            w = x
            for k in range(t * k0, (t + 1) * k0):
                gamma = step_size(step, k, k0, clients[i].d)
                for _ in range(inner):  # Algorithm 4
                    w = w - gamma * (clients[i].gradient(w) + mu * (w - x))
            z[i] = w  # (37)
        if average == "trained":
            x = sum(z[i] for i in chosen) / len(chosen)
        yield x
