"""FedOpt with full gradients: the server's optimisers on the mean step of FedAvg's clients.

Source: S. J. Reddi et al., "Adaptive federated optimization", 2021, arXiv 2003.00295, Algorithm 2 (FedAdagrad, FedAdam,
FedYogi); D. Jhunjhunwala, S. Wang and G. Joshi, "FedExP: Speeding up federated averaging via extrapolation", 2023,
arXiv 2301.09604, Algorithm 1; momentum as in T.-M. H. Hsu et al., 2019, arXiv 1909.06335, section 4.
"""

import numpy as np

from . import fedavg


class Method(fedavg.Method):
    asynchronous = False
    server = None
    stretched = 1.0

    def prepare(self):
        super().prepare()
        self.u = np.zeros(len(self.x))
        self.v = np.full(len(self.x), self.server.get("tau", 0.0) ** 2)

    def begin(self, i):
        return super().begin(i) - self.x

    def step(self, uploads, ages):
        server = self.server
        steps = list(uploads.values())
        delta = sum(steps) / len(steps)
        if server["name"] == "fedexp":
            diversity = sum(s @ s for s in steps) / (2 * len(steps) * (delta @ delta + server["eps"]))
            self.stretched = max(1.0, diversity)
            moved = self.stretched * delta
        elif server["name"] == "momentum":
            self.u = server["beta"] * self.u + delta
            moved = server["lr"] * self.u
        else:
            self.u = server["beta1"] * self.u + (1 - server["beta1"]) * delta
            self.v = second_moment(server, self.v, delta**2)
            moved = server["lr"] * self.u / (np.sqrt(self.v) + server["tau"])
        self.x = self.x + moved
        self.k += self.count

    def shows(self):
        return {"server_step": self.stretched} if self.server["name"] == "fedexp" else {}


def second_moment(server, v, square):
    if server["name"] == "adagrad":
        return v + square
    if server["name"] == "adam":
        return server["beta2"] * v + (1 - server["beta2"]) * square
    return v - (1 - server["beta2"]) * square * np.copysign(1.0, v - square)
