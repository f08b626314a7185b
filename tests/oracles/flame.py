"""FLAME with full batches: personal models by local epochs, local models and duals in closed form.

Source: S. Zhu et al., "Personalized federated learning via ADMM with Moreau envelope", 2023, arXiv 2311.06756,
Algorithm 1, equations (9)–(12), α_i = 1/m. ``center``: personal models are pulled to the broadcast model, as in the
authors' program, or to the client's own w_i, as printed. θ_i is kept over rounds and the last iterate is taken.
"""

from .synchronous import Lasting


class Method(Lasting):
    rho = 0.01
    lam = 5.0
    lr = 0.01
    epochs = 5
    center = "global"
    weight_decay = 0.0
    vectors = (*Lasting.vectors, "theta", "w")

    def train(self, i, pull):
        """θ_i by gradient steps on f_i(θ) + (λ/2)‖θ − pull‖²: (9)."""
        for _ in range(self.epochs):
            slope = self.clients[i].gradient(self.theta[i]) + self.weight_decay * self.theta[i]
            self.theta[i] = self.theta[i] - self.lr * (slope + self.lam * (self.theta[i] - pull))
        return self.theta[i]

    def begin(self, i):
        theta, share = self.train(i, self.x if self.center == "global" else self.w[i]), self.lam / self.m
        self.w[i] = (share * theta + self.rho * self.x - self.pi[i]) / (share + self.rho)  # (10)
        self.pi[i] = self.pi[i] + self.rho * (self.w[i] - self.x)  # (11)
        return self.w[i] + self.pi[i] / self.rho

    def shows(self):
        return self.personal(self.theta)
