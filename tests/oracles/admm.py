"""Alternating directions: FedADMM, FedGiA and their relatives."""

import math

import numpy as np

from .problems import LeastSquares, zeros
from .synchronous import Lasting


class FedADMM(Lasting):
    """FedADMM: chosen clients solve their augmented Lagrangian inexactly, the server averages all last uploads.

    Source: S. Zhou and G. Y. Li, "Federated learning via inexact ADMM", 2022, arXiv 2204.10607, Algorithm 1, equations
    (3.3)–(3.8) and the inner solver (3.12); constants of section 5.2: α_i = 1/m, π⁰ = 0, σ_i = r0 r_i/m, ε_i⁰ = k0².
    The inner test (3.5) takes the gradient at the new point; at least one and at most ``inner_max`` steps are made.
    ``start``: π_i⁰ = 0, or minus the gradient at x⁰ = 0.
    """

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


class FedADMMDeep(Lasting):
    """FedADMM for networks, with full batches: clients descend on their augmented Lagrangian, all are averaged.

    Source: Y. Gong, Y. Li and N. M. Freris, "FedADMM: A robust federated deep learning framework with adaptivity to
    system heterogeneity", 2022, arXiv 2204.03529, as compared in S. Zhu et al., "Personalized federated learning via
    ADMM with Moreau envelope", 2023, arXiv 2311.06756, section 5: local training starts at the broadcast model, the
    upload is θ + π/rho, and the server averages the last uploads of all m clients.
    """

    rho = 0.01
    lr = 0.01
    epochs = 5
    weight_decay = 0.0

    def begin(self, i):
        theta = self.x
        for _ in range(self.epochs):
            slope = self.clients[i].gradient(theta) + self.weight_decay * theta
            theta = theta - self.lr * (slope + self.pi[i] + self.rho * (theta - self.x))
        self.pi[i] = self.pi[i] + self.rho * (theta - self.x)
        return theta + self.pi[i] / self.rho


def fedadmm_insa(clients, selections, *, r0=0.2, mu=5.0, tau=2.0, memory=0.01, c=0.01, inner_max=10):
    """FedADMM-InSa with full gradients: relative inexactness, and penalties that adapt themselves.

    Source: Y. Song, Z. Wang, E. Zuazua, "FedADMM-InSa: An inexact and self-adaptive ADMM for federated learning", 2024,
    arXiv 2402.13989: the server as in the authors' program, the clients as in two public copies of it, with weights
    1/m; steps are (3.12) of FedADMM, arXiv 2204.10607.
    """
    n = clients[0].n
    beta = [r0 * client.lipschitz for client in clients]
    sent = list(beta)
    pi, own = zeros(clients), zeros(clients)
    w, steps = np.zeros(n), 0.0
    yield w, {"inner_steps": steps}
    for chosen in selections:
        for i in chosen:
            theta = 0.999 * np.sqrt(2) / (np.sqrt(2) + np.sqrt(beta[i] / c))
            before, v = own[i], w
            first = np.linalg.norm(error(clients[i], pi[i], beta[i], w, w))
            for _ in range(inner_max):
                v = v - error(clients[i], pi[i], beta[i], w, v) / (clients[i].lipschitz + beta[i])
                steps += 1
                if np.linalg.norm(error(clients[i], pi[i], beta[i], w, v)) <= theta * first:
                    break
            own[i] = v
            pi[i] = pi[i] + beta[i] * (v - w)
            sent[i] = beta[i]
            p, d = beta[i] * np.linalg.norm(v - before), np.linalg.norm(v - w)
            if p < d / mu:
                beta[i] = tau * beta[i]
            elif d < p / mu:
                beta[i] = beta[i] / tau
        mean = sum(b * v + q for b, v, q in zip(sent, own, pi, strict=True)) / sum(sent)
        w = (mean + memory * w) / (1 + memory)
        yield w, {"inner_steps": steps}


def error(client, pi, beta, w, v):
    """e_i(v), the gradient of the augmented Lagrangian."""
    return client.gradient(v) + pi + beta * (v - w)


class ADADMM(Lasting):
    """AD-ADMM: consensus ADMM in which the master goes on with the workers that have arrived.

    Source: T.-H. Chang et al., "Asynchronous distributed ADMM for large-scale optimization, Part I", 2016, arXiv
    1509.02597, with h = 0, from memory: a worker minimises f_i(x) + ⟨λ_i, x⟩ + (ρ/2)‖x − x̂₀‖² at the x̂₀ that it was
    sent, and moves its λ_i; the master minimises its part of the augmented Lagrangian of all m workers with (γ/2)‖x₀ −
    x₀ᵏ‖². Subproblems are solved by Newton's method with dense matrices. ρ is a quarter of max r_i unless it is given.
    """

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


def sisa(clients, selections, *, sigma=None, gamma=1.0, preconditioner="second-moment", rho=1.0, beta=0.9):
    """SISA and PISA with full gradients.

    Source: S. Zhou, O. Wang, Z. Luo, Y. Zhu, G. Y. Li, "Preconditioned inexact stochastic ADMM for deep models", 2025,
    arXiv 2502.10784, as the authors' program has it, with weights 1/m, without weight decay and corrections of the
    moments. Clients that do not take part leave their last w_i + π_i/σ_i with the server.
    """
    first = [client.lipschitz if sigma is None else sigma for client in clients]
    pi = zeros(clients)
    moment = zeros(clients)
    own = zeros(clients)
    w = np.zeros(clients[0].n)
    yield w
    for k, chosen in enumerate(selections):
        for i in chosen:
            penalty = first[i] / gamma ** (k + 1)
            u = pi[i] + clients[i].gradient(w)
            moment[i] = beta * moment[i] + (1 - beta) * u**2
            steep = {"second-moment": np.sqrt(moment[i]), "smoothness": clients[i].lipschitz * np.ones(len(w))}
            wi = w - np.linalg.solve(np.diag(penalty + rho * steep[preconditioner]), u)
            pi[i] = pi[i] + penalty * (wi - w)
            own[i] = wi + pi[i] / penalty
        w = sum(s * v for s, v in zip(first, own, strict=True)) / sum(first)
        yield w


def fedgia(clients, selections, *, k0=10, H="diagonal", t=None, adaptive=False, start="zero"):
    """FedGiA: chosen clients take k0 steps of inexact ADMM with one gradient, the others one gradient step.

    Source: S. Zhou and G. Y. Li, "FedGiA: An efficient hybrid algorithm for federated learning", 2022, arXiv
    2205.01438, Algorithm 1, equations (11)–(17); H_i and t of Table III, with the μ/d_i of Example V.3 in Example V.2
    too; σ = t max r_i/m; x_i⁰ = 0; π_i⁰ = 0, or with ``start`` minus the gradient there. With ``adaptive``, which is
    not the paper's, the server chooses σ of the next round by the curvature along its last step and by its error, as Y.
    Malitsky and K. Mishchenko choose a step size ("Adaptive gradient descent without descent", 2020, arXiv 1910.09529),
    and takes back a step that was too long.
    """
    m, n = len(clients), clients[0].n
    steepest = max(client.lipschitz for client in clients) / m
    sigma = (table_3(clients) if t is None else t) * steepest
    x = np.zeros(n)
    pi = zeros(clients)
    z = zeros(clients)
    if start == "-gradient":
        pi = [-client.gradient(x) / m for client in clients]
        x = sum(pi) / (m * sigma)
    yield x, {"penalty": sigma} if adaptive else {}
    last = None  # the model before, and σ(x − x⁺) and its error there
    for chosen in selections:
        for i in range(m):
            g = clients[i].gradient(x) / m
            if i in chosen:
                own, pi[i] = trained(x, g, pi[i], metric(clients[i], H) / m, sigma, k0)
                z[i] = own + pi[i] / sigma  # (14)
            else:
                pi[i] = -g  # (16)
                z[i] = x - g / sigma  # (17)
        after = sum(z) / m  # (11)
        if adaptive:
            drop = sigma * (x - after)
            error = sum(length(clients[i].gradient(x) / m + sigma * (z[i] - x)) for i in range(m)) / (4 * m)
            if last is None:
                last = x, drop, error
            else:
                change, moved = length(drop - last[1]), length(x - last[0])
                c = min((change - error - last[2]) / moved, steepest)
                if c > 2 * sigma:
                    after, last = last[0], None
                    while sigma < c:
                        sigma *= 2
                else:
                    wanted = 2 * min((change + error + last[2]) / moved, steepest)
                    sigma, last = next_penalty(sigma, wanted), (x, drop, error)
        x = after
        yield x, {"penalty": sigma} if adaptive else {}


def trained(x, g, pi, H, sigma, k0):
    """x_i and π_i after k0 steps from the model x with the gradient g."""
    for _ in range(k0):
        own = x - np.linalg.solve(H + sigma * np.eye(len(x)), g + pi)  # (12)
        pi = pi + sigma * (own - x)  # (13)
    return own, pi


def length(v):
    return np.sqrt(np.sum(v * v))


def next_penalty(sigma, wanted):
    """The one of σ/2, σ, 2σ, 4σ … whose ratio to the wanted one is nearest to 1."""
    return min((sigma * 2.0**k for k in range(-1, 60)), key=lambda s: abs(np.log(s / wanted)))


def metric(client, H):
    """H_i of Table III."""
    return {
        "gram": client.majorant,
        "diagonal": client.lipschitz * np.eye(client.n),
        "zero": np.zeros((client.n, client.n)),
    }[H]


def table_3(clients):
    """t of Table III; d is the number of all samples."""
    if isinstance(clients[0], LeastSquares):
        return 0.15
    return max(0.025, 4 * math.log(sum(client.d for client in clients)) / clients[0].n)


class FedGiAAsync(Lasting):
    """FedGiA in which clients that do not take part keep their last upload: an asynchronous form of the method.

    Source: S. Zhou and G. Y. Li, "FedGiA: An efficient hybrid algorithm for federated learning", 2022, arXiv
    2205.01438, equations (11)–(14) and for clients that are not selected their last upload.
    """

    k0 = 10
    H = "diagonal"
    t = None

    def prepare(self):
        t = table_3(self.clients) if self.t is None else self.t
        self.sigma = t * max(client.lipschitz for client in self.clients) / self.m

    def begin(self, i):
        g = self.clients[i].gradient(self.x) / self.m
        H = metric(self.clients[i], self.H) / self.m
        own, self.pi[i] = trained(self.x, g, self.pi[i], H, self.sigma, self.k0)
        return own + self.pi[i] / self.sigma  # (14)
