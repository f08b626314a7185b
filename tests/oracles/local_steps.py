"""Methods with a server and local gradient steps: FedAvg and what changes its steps or its mean."""

import math

import numpy as np

from mpifed.core.streams import stream

from .problems import zeros
from .synchronous import Server

LOG2 = {"name": "log2", "a": 0.01}
SQRT_SAMPLES = {"name": "sqrt-samples", "a": 2.0}


def step_size(step, k, k0, d):
    """γ_k, or γ_i of a client with d samples."""
    name, a = step["name"], step["a"]
    if name == "constant":
        return a
    if name == "log2":  # FedGiA, section V.D
        return a / math.log2(k + 2)
    if name == "sqrt-samples":  # FedEPM (38)
        return a * d / math.sqrt(2 * k0 + k // k0)
    raise ValueError(name)


class FedAvg(Server):
    """FedAvg with full gradients.

    Source: B. McMahan et al., "Communication-efficient learning of deep networks from decentralized data", 2017, arXiv
    1602.05629. Followed here: Algorithm 2 of S. Zhou and G. Y. Li, "Federated learning via inexact ADMM", 2022, arXiv
    2204.10607, equations (3.14)–(3.16), the factor of the gradient being 1 or 1/m (``scale``), and the step γ_k of
    FedGiA (arXiv 2205.01438), section V.D.

    With full batches a local epoch is one gradient step, so ``epochs`` > 0 stands in place of k0. Asynchronously the
    mean is that of those that arrive, or of the last uploads of all.
    """

    k0 = 5
    scale = "1"
    aggregate = "chosen"
    epochs = 0
    k = 0
    vectors = ("last",)

    def __init__(self, clients, step=LOG2, **options):
        self.rule = step
        super().__init__(clients, **options)

    def prepare(self):
        self.count = self.epochs or self.k0
        self.factor = 1.0 if self.scale == "1" else 1 / self.m

    def gammas(self, i):
        """The steps of the iterations to come."""
        return [step_size(self.rule, k, self.k0, self.clients[i].d) for k in range(self.k, self.k + self.count)]

    def slope(self, i, w):
        return self.factor * self.clients[i].gradient(w)

    def begin(self, i):
        w = self.x
        for gamma in self.gammas(i):
            w = w - gamma * self.slope(i, w)  # (3.16)
        return w

    def step(self, uploads, ages):
        for i, w in uploads.items():
            self.last[i] = w
        averaged = range(self.m) if self.aggregate == "all" else uploads
        self.x = sum(self.last[i] for i in averaged) / len(averaged)  # (3.14), (3.15)
        self.k += self.count


class FedProx(FedAvg):
    """FedProx with full gradients: every local iteration is a few gradient steps on f_i(w) + (mu/2)‖w − x‖².

    Source: T. Li et al., "Federated optimization in heterogeneous networks", 2020, arXiv 1812.06127. Followed here: as
    compared in S. Zhou and G. Y. Li, "FedGiA", 2022, arXiv 2205.01438, section V.D; the descent is (3.17) of FedADMM
    (arXiv 2204.10607) with its sign put right. It begins at x in the first iteration of a round, at w_i in the others;
    with ``begin`` = "own" it begins at the client's last w_i, as (3.15) of FedADMM has it.
    """

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


class FedPD(FedAvg):
    """FedPD: clients descend on their augmented Lagrangian from the global model and update their dual.

    Source: X. Zhang et al., "FedPD: A federated learning framework with optimal rates and adaptivity to non-IID data",
    2020, arXiv 2005.11418, oracle choice I, option I. Followed here: as compared in S. Zhou and G. Y. Li, "FedGiA",
    2022, arXiv 2205.01438, section V.D: every local iteration descends from the global x, the dual is updated in every
    iteration, and the server averages w_i + eta λ_i of all m clients, of unselected ones the last.
    """

    asynchronous = False
    aggregate = "all"
    eta = 1.0
    inner = 5
    vectors = (*FedAvg.vectors, "dual")

    def begin(self, i):
        for gamma in self.gammas(i):
            w = self.x
            for _ in range(self.inner):
                w = w - gamma * (self.slope(i, w) + self.dual[i] + (w - self.x) / self.eta)
            self.dual[i] = self.dual[i] + (w - self.x) / self.eta
        return w + self.eta * self.dual[i]


class Scaffold(FedAvg):
    """SCAFFOLD with full gradients: local steps corrected by control variates, renewed by option II.

    Source: S. P. Karimireddy et al., "SCAFFOLD: Stochastic controlled averaging for federated learning", 2020, arXiv
    1910.06378, Algorithm 1. Where the local step varies within a round, K η_l of option II is the sum of the steps
    taken.
    """

    asynchronous = False
    server_lr = 1.0
    c = 0.0
    vectors = (*FedAvg.vectors, "own")  # c_i

    def slope(self, i, w):
        return super().slope(i, w) - self.own[i] + self.c

    def begin(self, i):
        y = super().begin(i)
        change = (self.x - y) / sum(self.gammas(i)) - self.c  # of c_i by option II
        self.own[i] = self.own[i] + change
        return y - self.x, change

    def step(self, uploads, ages):
        models, variates = zip(*uploads.values(), strict=True)
        self.x = self.x + self.server_lr * sum(models) / len(uploads)
        self.c = self.c + len(uploads) / self.m * (sum(variates) / len(uploads))
        self.k += self.count


class FedVARP(FedAvg):
    """FedVARP with full gradients, with the table of all last steps at the server.

    Source: D. Jhunjhunwala et al., "FedVARP: Tackling the variance due to partial client participation in federated
    learning", 2022, arXiv 2207.14130, Algorithm 2.
    """

    asynchronous = False
    server_lr = 1.0
    vectors = (*FedAvg.vectors, "table")

    def begin(self, i):
        return super().begin(i) - self.x

    def step(self, uploads, ages):
        apart = sum(change - self.table[i] for i, change in uploads.items()) / len(uploads)
        self.x = self.x + self.server_lr * (sum(self.table) / self.m + apart)
        self.renew(uploads)

    def renew(self, uploads):
        for i, change in uploads.items():
            self.table[i] = change
        self.k += self.count


class MIFA(FedVARP):
    """MIFA with full gradients, with the table of all last steps at the server.

    Source: X. Gu et al., "Fast federated learning in the presence of arbitrary device unavailability", 2021, arXiv
    2106.04159, Algorithm 1; a client that has not yet replied counts with a step of 0.
    """

    def step(self, uploads, ages):
        self.renew(uploads)
        self.x = self.x + self.server_lr * sum(self.table) / self.m


def weights(gammas, beta):
    """a_i of heavy-ball momentum: the gradient of step l counts in the steps l, l + 1 …, each time β times less."""
    return [sum(gamma * beta ** (k - l) for k, gamma in enumerate(gammas) if k >= l) for l in range(len(gammas))]


class FedNova(FedAvg):
    """FedNova with full gradients and plain or momentum steps.

    Source: J. Wang et al., "Tackling the objective inconsistency problem in heterogeneous federated optimization",
    2020, arXiv 2007.07481: (5)–(7) with the gradients G_i and the weights a_i written out, p_i equal for all clients
    that take part, and τ_eff = Σ p_i ‖a_i‖₁. Where the step varies, it is part of a_i. Client i takes k0 steps, or
    ``steps[i]``.
    """

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


class FedOpt(FedAvg):
    """FedOpt with full gradients: the server's optimisers on the mean step of FedAvg's clients.

    Source: S. J. Reddi et al., "Adaptive federated optimization", 2021, arXiv 2003.00295, Algorithm 2 (FedAdagrad,
    FedAdam, FedYogi); D. Jhunjhunwala, S. Wang and G. Joshi, "FedExP: Speeding up federated averaging via
    extrapolation", 2023, arXiv 2301.09604, Algorithm 1; momentum as in T.-M. H. Hsu et al., 2019, arXiv 1909.06335,
    section 4.
    """

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


def feddyn(clients, selections, *, alpha=0.1, k0=5, step=LOG2, epochs=0):
    """FedDyn with full gradients.

    Source: D. A. E. Acar et al., "Federated learning based on dynamic regularization", 2021, arXiv 2111.04263,
    Algorithm 1. Its local problem min L_k(θ) − ⟨∇L_k(θ_k^{t−1}), θ⟩ + (α/2)‖θ − θ^{t−1}‖² is solved by gradient steps
    from the server's model, and the gradient kept by a client follows from its recursion, ∇L_k(θ_k^t) = ∇L_k(θ_k^{t−1})
    − α(θ_k^t − θ^{t−1}). Only clients that take part change theirs.
    """
    m, iterations = len(clients), epochs or k0
    kept = zeros(clients)  # ∇L_k at the clients' last points
    h = np.zeros(clients[0].n)
    x = np.zeros(clients[0].n)
    yield x
    for t, chosen in enumerate(selections):
        start, ends = x, []
        for i in chosen:
            theta = start
            for k in range(t * iterations, (t + 1) * iterations):
                slope = clients[i].gradient(theta) - kept[i] + alpha * (theta - start)
                theta = theta - step_size(step, k, iterations, clients[i].d) * slope
            kept[i] = kept[i] - alpha * (theta - start)
            ends.append(theta)
        h = h - alpha / m * sum(theta - start for theta in ends)
        x = sum(ends) / len(chosen) - h / alpha
        yield x


def q_fedavg(clients, selections, *, q=1.0, k0=5, lr=0.01, epochs=0):
    """q-FedAvg: local steps, then one of the server that counts the clients with larger losses more.

    Source: T. Li, M. Sanjabi, A. Beirami, V. Smith, "Fair resource allocation in federated learning", 2020, arXiv
    1905.10497, Algorithm 2 with L = 1/lr.
    """
    x = np.zeros(clients[0].n)
    yield x, {"fair_objective": fair(clients, x, q)}
    for chosen in selections:
        up, down = 0.0, 0.0
        for i in chosen:
            w = x
            for _ in range(epochs or k0):
                w = w - lr * clients[i].gradient(w)
            change = (x - w) / lr
            f = clients[i].value(x)
            up = up + f**q * change
            down += q * f ** (q - 1) * np.sum(change**2) + f**q / lr
        x = x - up / down
        yield x, {"fair_objective": fair(clients, x, q)}


def fair(clients, x, q):
    return sum(client.value(x) ** (q + 1) for client in clients) / (q + 1) / len(clients)


def local_gd(clients, selections, *, k0=5, gamma=None):
    """Local gradient descent: Algorithm 1 with t_p = p·k0, of A. Khaled, K. Mishchenko, P. Richtárik, "First analysis
    of local GD on heterogeneous data", 2019, arXiv 1909.04715: every client has an iterate of its own at every time t,
    and every k0-th time these are replaced by their mean. The default step is 1/L with L = max L_i.
    """
    if gamma is None:
        gamma = 1 / max(client.lipschitz for client in clients)
    x = np.zeros(clients[0].n)
    yield x
    for chosen in selections:
        iterates = dict.fromkeys(chosen, x)
        for t in range(1, k0 + 1):
            stepped = {i: own - gamma * clients[i].gradient(own) for i, own in iterates.items()}
            mean = sum(stepped.values()) / len(chosen)
            iterates = dict.fromkeys(chosen, mean) if t == k0 else stepped
        x = iterates[chosen[0]]
        yield x


def gd(clients, selections, **options):
    """Gradient descent with the mean gradient of the clients that take part.

    Source: A. Khaled, K. Mishchenko, P. Richtárik, "First analysis of local GD on heterogeneous data", 2019, arXiv
    1909.04715, Algorithm 1 with a communication after every step. By default the step is 1/L with L = max L_i.
    """
    yield from local_gd(clients, selections, k0=1, **options)


def coins(round, p):
    """0 for every step without communication, then 1."""
    return [0] * (stream(0, "server", round).geometric(p) - 1) + [1]


def proxskip(clients, selections, *, gamma=None, p=None):
    """ProxSkip for federated learning, Algorithm 2 (Scaffnew), step by step and coin by coin, with full gradients.

    Source: K. Mishchenko, G. Malinovsky, S. Stich, P. Richtárik, "ProxSkip: Yes! Local gradient steps provably lead to
    communication acceleration! Finally!", 2022, arXiv 2202.09357. A round ends with the first coin that says 1; the
    coins are those of the server's stream of a run with seed 0. With all clients the mean is that of x̂_i − (γ/p)h_i,
    as printed; where only some take part it is that of x̂_i (L. Condat et al., arXiv 2302.09832), and the others wait.
    """
    L = max(client.lipschitz for client in clients)
    gamma = 1 / L if gamma is None else gamma
    p = math.sqrt(min(client.convexity for client in clients) / L) if p is None else p
    h = zeros(clients)
    start = np.zeros(clients[0].n)
    yield start
    for t, chosen in enumerate(selections, 1):
        x = dict.fromkeys(chosen, start)
        for coin in coins(t, p):
            hat = {i: x[i] - gamma * (clients[i].gradient(x[i]) - h[i]) for i in chosen}
            mean = sum(hat.values()) / len(chosen)
            if len(chosen) == len(clients):
                mean = sum(hat[i] - gamma / p * h[i] for i in chosen) / len(chosen)
            for i in chosen:
                x[i] = mean if coin else hat[i]
                h[i] = h[i] + p / gamma * (x[i] - hat[i])
        start = x[chosen[0]]
        yield start
