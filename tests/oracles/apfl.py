"""APFL with full gradients: FedAvg, and beside it a model v_i of every client, mixed with the local one.

Source: Y. Deng, M. M. Kamani and M. Mahdavi, "Adaptive personalized federated learning", 2020, arXiv 2003.13461,
Algorithm 1 with one α for all clients: both steps of an iteration begin at the last (w_i, v_i), and ∇_v of
f_i(α v + (1 − α) w) is α∇f_i at the mixture.
"""

from . import fedavg


class Method(fedavg.Method):
    alpha = 0.5
    vectors = (*fedavg.Method.vectors, "v", "mixed")

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
