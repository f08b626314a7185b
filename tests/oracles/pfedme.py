"""pFedMe with full batches: personal models by local epochs; each client's model steps towards its personal one.

Source: C. T. Dinh, N. H. Tran and T. D. Nguyen, "Personalized federated learning with Moreau envelopes", 2020, arXiv
2006.08848, Algorithm 1 with one local round, as compared in S. Zhu et al., 2023, arXiv 2311.06756, section 5: the
server averages the last w_i of all m clients, and θ_i, trained as in FLAME, is kept over rounds.
"""

from . import flame


class Method(flame.Method):
    eta = 0.5

    def __init__(self, clients, begin="own", **options):
        self.at_server = begin == "server"
        super().__init__(clients, **options)

    def begin(self, i):
        if self.at_server:
            self.theta[i] = self.x
        return self.x - self.eta * self.lam * (self.x - self.train(i, self.x))
