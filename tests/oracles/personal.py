"""Methods in which clients have models of their own beside the server's."""

import numpy as np

from .local_steps import FedAvg
from .synchronous import Lasting


class Flame(Lasting):
    """FLAME with full batches: personal models by local epochs, local models and duals in closed form.

    Source: S. Zhu et al., "Personalized federated learning via ADMM with Moreau envelope", 2023, arXiv 2311.06756,
    Algorithm 1, equations (9)–(12), α_i = 1/m. ``center``: personal models are pulled to the broadcast model, as in the
    authors' program, or to the client's own w_i, as printed. θ_i is kept over rounds and the last iterate is taken.
    """

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


class FlameDP(Flame):
    """FLAME with full batches and clipped uploads, without noise: u_i = z_i − w is shortened to the length ``clip``.

    Source: as for FLAME; the clipping is that of M. Abadi et al., "Deep learning with differential privacy", 2016,
    arXiv 1607.00133, applied to whole uploads.
    """

    asynchronous = False
    clip = 1.0
    noise_multiplier = 0

    def begin(self, i):
        u = super().begin(i) - self.x
        return self.x + u * min(1.0, (1 - 1e-9) * self.clip / max(np.linalg.norm(u), 1e-300))  # a hair below the bound


class PFedMe(Flame):
    """pFedMe with full batches: personal models by local epochs; each client's model steps towards its personal one.

    Source: C. T. Dinh, N. H. Tran and T. D. Nguyen, "Personalized federated learning with Moreau envelopes", 2020,
    arXiv 2006.08848, Algorithm 1 with one local round, as compared in S. Zhu et al., 2023, arXiv 2311.06756, section 5:
    the server averages the last w_i of all m clients, and θ_i, trained as in FLAME, is kept over rounds.
    """

    eta = 0.5

    def __init__(self, clients, begin="own", **options):
        self.at_server = begin == "server"
        super().__init__(clients, **options)

    def begin(self, i):
        if self.at_server:
            self.theta[i] = self.x
        return self.x - self.eta * self.lam * (self.x - self.train(i, self.x))


class Ditto(FedAvg):
    """Ditto with full gradients: FedAvg, and beside it a personal model of every client.

    Source: T. Li, S. Hu, A. Beirami and V. Smith, "Ditto: Fair and robust federated learning through personalization",
    2021, arXiv 2012.04221, Algorithm 1, with k0 gradient steps for the global model.
    """

    lam = 1.0
    lr = 0.01
    inner = 5
    vectors = (*FedAvg.vectors, "theta")

    def begin(self, i):
        theta = self.theta[i]
        for _ in range(self.inner):
            theta = theta - self.lr * (self.clients[i].gradient(theta) + self.lam * (theta - self.x))
        self.theta[i] = theta
        return super().begin(i)

    def shows(self):
        return self.personal(self.theta)


class FedRep(FedAvg):
    """FedRep with full gradients, of a model all of whose coordinates are its body.

    Source: L. Collins, H. Hassani, A. Mokhtari and S. Shakkottai, "Exploiting shared representations for personalized
    federated learning", 2021, arXiv 2102.07078, Algorithm 1, with k0 steps of the body of one size. Heads are in
    ``tests/features/personal_parts``.
    """

    k0 = 1
    head_steps = 10
    head_epochs = 0

    def begin(self, i):
        w = self.x
        gamma = self.gammas(i)[0]
        for _ in range(self.count):
            w = w - gamma * self.slope(i, w)
        return w


class APFL(FedAvg):
    """APFL with full gradients: FedAvg, and beside it a model v_i of every client, mixed with the local one.

    Source: Y. Deng, M. M. Kamani and M. Mahdavi, "Adaptive personalized federated learning", 2020, arXiv 2003.13461,
    Algorithm 1 with one α for all clients: both steps of an iteration begin at the last (w_i, v_i), and ∇_v of
    f_i(α v + (1 − α) w) is α∇f_i at the mixture.
    """

    alpha = 0.5
    vectors = (*FedAvg.vectors, "v", "mixed")

    def begin(self, i):
        w = self.x
        v = self.v[i]
        alpha = self.alpha
        for gamma in self.gammas(i):
            of_v = alpha * self.slope(i, alpha * v + (1 - alpha) * w)
            w = w - gamma * self.slope(i, w)
            v = v - gamma * of_v
        self.v[i] = v
        self.mixed[i] = alpha * v + (1 - alpha) * w
        return w

    def shows(self):
        return self.personal(self.mixed)
