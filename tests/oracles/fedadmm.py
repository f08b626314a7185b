"""FedADMM: chosen clients solve their augmented Lagrangian inexactly, the server averages all last uploads.

Source: S. Zhou and G. Y. Li, "Federated learning via inexact ADMM", 2022, arXiv 2204.10607, Algorithm 1, equations
(3.3)–(3.8) and the inner solver (3.12); constants of section 5.2: α_i = 1/m, π⁰ = 0, σ_i = r0 r_i/m, ε_i⁰ = k0².
The inner test (3.5) takes the gradient at the new point; at least one and at most ``inner_max`` steps are made.
``start``: π_i⁰ = 0, or minus the gradient at x⁰ = 0.
"""

from .synchronous import Lasting


class Method(Lasting):
    k0 = 10
    r0 = 0.2
    nu = 0.95
    eps0 = None
    inner_max = 3
    start = "zero"
    steps = 0

    def prepare(self):
        self.sigma = [self.r0 * client.lipschitz / self.m for client in self.clients]
        self.eps = [self.k0**2 if self.eps0 is None else self.eps0] * self.m
        if self.start == "-gradient":
            self.pi = [-client.gradient(self.x) / self.m for client in self.clients]
            self.z = list(self.pi)
            self.x = self.mean()

    def begin(self, i):
        sigma = self.sigma[i]
        for _ in range(self.k0):
            self.eps[i] = self.nu * self.eps[i]  # (3.4)
            own = self.solve(i)
            self.pi[i] = self.pi[i] + sigma * (own - self.x)  # (3.6)
        return sigma * own + self.pi[i]  # (3.7)

    def solve(self, i):
        """Steps (3.12) from x until (3.5) holds."""
        client = self.clients[i]
        sigma = self.sigma[i]
        alpha = 1 / self.m
        r = self.clients[i].lipschitz / self.m
        v, g = self.x, alpha * client.gradient(self.x)
        for _ in range(self.inner_max):
            v = (r * v + sigma * self.x - (g + self.pi[i])) / (r + sigma)  # (3.12)
            g = alpha * client.gradient(v)
            residual = g + self.pi[i] + sigma * (v - self.x)
            self.steps += 1
            if residual @ residual <= self.eps[i]:  # (3.5)
                break
        return v

    def mean(self):
        return sum(self.z) / sum(self.sigma)  # (3.3)

    def shows(self):
        return {"inner_steps": float(self.steps)}
