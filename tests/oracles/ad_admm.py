"""AD-ADMM: consensus ADMM in which the master goes on with the workers that have arrived.

Source: T.-H. Chang et al., "Asynchronous distributed ADMM for large-scale optimization, Part I", 2016, arXiv
1509.02597, with h = 0, from memory: a worker minimises f_i(x) + ⟨λ_i, x⟩ + (ρ/2)‖x − x̂₀‖² at the x̂₀ that it was sent,
and moves its λ_i; the master minimises its part of the augmented Lagrangian of all m workers with (γ/2)‖x₀ − x₀ᵏ‖².
Subproblems are solved by Newton's method with dense matrices. ρ is a quarter of max r_i unless it is given.
"""

import numpy as np

from .synchronous import Lasting


class Method(Lasting):
    rho = None
    gamma = 0.0
    solver = None  # of mpifed
    vectors = (*Lasting.vectors, "own")

    def prepare(self):
        self.rho = self.rho or max(client.lipschitz for client in self.clients) / 4

    def begin(self, i):
        client, own = self.clients[i], self.own[i]
        for _ in range(50):
            slope = client.gradient(own) + self.pi[i] + self.rho * (own - self.x)
            if np.linalg.norm(slope) < 1e-13:
                break
            own = own - np.linalg.solve(client.hessian(own) + self.rho * np.eye(client.n), slope)
        self.own[i] = own
        self.pi[i] = self.pi[i] + self.rho * (own - self.x)
        return self.rho * own + self.pi[i]

    def mean(self):
        return (sum(self.z) + self.gamma * self.x) / (self.m * self.rho + self.gamma)
