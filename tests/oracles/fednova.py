"""FedNova with full gradients and plain or momentum steps.

Source: J. Wang et al., "Tackling the objective inconsistency problem in heterogeneous federated optimization", 2020,
arXiv 2007.07481: (5)–(7) with the gradients G_i and the weights a_i written out, p_i equal for all clients that take
part, and τ_eff = Σ p_i ‖a_i‖₁. Where the step varies, it is part of a_i. Client i takes k0 steps, or ``steps[i]``.
"""

import numpy as np

from . import fedavg


def weights(gammas, beta):
    """a_i of heavy-ball momentum: the gradient of step l counts in the steps l, l + 1 …, each time β times less."""
    return [sum(gamma * beta ** (k - l) for k, gamma in enumerate(gammas) if k >= l) for l in range(len(gammas))]


class Method(fedavg.Method):
    optimizer = None
    steps = None

    def begin(self, i):
        beta = (self.optimizer or {}).get("beta", 0.0)
        gammas = self.gammas(i)[: self.steps[i] if self.steps else None]
        w = self.x
        velocity = np.zeros(len(self.x))
        G = []
        for gamma in gammas:
            G.append(self.clients[i].gradient(w))
            velocity = beta * velocity + G[-1]
            w = w - gamma * velocity
        a = np.array(weights(gammas, beta))
        return a @ np.array(G) / a.sum(), a.sum()

    def step(self, uploads, ages):
        share = 1 / len(uploads)
        direction = sum(share * d for d, _ in uploads.values())
        self.x = self.x - sum(share * norm for _, norm in uploads.values()) * direction
        self.k += self.k0
