"""FedProx with full gradients: every local iteration is a few gradient steps on f_i(w) + (mu/2)‖w − x‖².

Source: T. Li et al., "Federated optimization in heterogeneous networks", 2020, arXiv 1812.06127. Followed here: as
compared in S. Zhou and G. Y. Li, "FedGiA", 2022, arXiv 2205.01438, section V.D; the descent is (3.17) of FedADMM
(arXiv 2204.10607) with its sign put right. It begins at x in the first iteration of a round, at w_i in the others;
with ``begin`` = "own" it begins at the client's last w_i, as (3.15) of FedADMM has it.
"""

from . import fedavg


class Method(fedavg.Method):
    mu = 1e-4
    inner = 5

    def __init__(self, clients, begin="global", **options):
        self.own = begin == "own"
        super().__init__(clients, **options)

    def begin(self, i):
        w = self.last[i] if self.own else self.x
        for gamma in self.gammas(i):
            for _ in range(self.inner):
                w = w - gamma * (self.slope(i, w) + self.mu * (w - self.x))
        return w
