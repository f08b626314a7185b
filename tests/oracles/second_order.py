"""Newton's method and what stands in for its Hessians; accelerated gradients."""

import numpy as np

from mpifed.core.streams import stream

from .compressed import compress
from .problems import mean_value, zeros


def newton(clients, selections, *, c=0.49, shrink=0.5):
    """Damped Newton steps on the mean of the functions of all clients, whoever is selected.

    Source: S. Boyd and L. Vandenberghe, "Convex optimization", 2004, doi 10.1017/CBO9780511804441, Algorithm 9.5 with
    the backtracking of Algorithm 9.2, from the full step on.
    """
    x = np.zeros(clients[0].n)
    yield x, {"server_step": 0.0}
    for _ in selections:
        f = mean(clients, lambda client: client.value(x))  # noqa: B023
        g = mean(clients, lambda client: client.gradient(x))  # noqa: B023
        H = mean(clients, lambda client: client.hessian(x))  # noqa: B023
        d = -np.linalg.inv(H) @ g
        s = 1.0
        while mean(clients, lambda client: client.value(x + s * d)) > f + c * s * (g @ d):  # noqa: B023
            s *= shrink
        x = x + s * d
        yield x, {"server_step": s}


def mean(clients, number):
    return sum(map(number, clients)) / len(clients)


def fednl(clients, selections, *, compressor, alpha=1.0, option="B", line_search=False, c=0.49, shrink=0.5):
    """FedNL: Newton's method with Hessians that the server learns from compressed differences, with deterministic C.

    Source: M. Safaryan, R. Islamov, X. Qian, P. Richtárik, "FedNL: Making Newton-type methods applicable to federated
    learning", arXiv:2106.02969 (2022), Algorithm 1 (option A: its option 1, B: its option 2) and Algorithm 3, with
    H_i⁰ = ∇²f_i(x⁰). All clients take part, whoever is selected.
    """
    m, n = len(clients), clients[0].n
    x = np.zeros(n)
    learned = [client.hessian(x) for client in clients]  # H_i
    mu = sum(getattr(client, "convexity", 0.0) for client in clients) / m
    yield x, {"server_step": 0.0} if line_search else {}
    for _ in selections:
        H = sum(learned) / m  # before the clients' updates
        g = np.zeros(n)
        l = 0.0
        value = 0.0
        for i in range(m):
            difference = clients[i].hessian(x) - learned[i]
            g = g + clients[i].gradient(x) / m
            l += np.sqrt((difference**2).sum()) / m
            value += clients[i].value(x) / m
            learned[i] = learned[i] + alpha * compressed(difference, compressor)
        A = H + l * np.eye(n) if option == "B" else projected(H, mu)
        d = -np.linalg.inv(A) @ g
        gamma = 1.0
        while line_search and mean_value(clients, [x + gamma * d] * m) > value + c * gamma * (g @ d):
            gamma *= shrink
        x = x + gamma * d
        yield x, {"server_step": gamma} if line_search else {}


def projected(H, mu):
    """The nearest symmetric matrix whose eigenvalues are at least μ."""
    values, vectors = np.linalg.eigh(H)
    return sum(max(value, mu) * np.outer(v, v) for value, v in zip(values, vectors.T, strict=True))


def compressed(M, compressor):
    """C(M): M itself, its k largest entries on and above the diagonal, mirrored, or its r largest eigenpairs."""
    n = len(M)
    if compressor["name"] == "identity":
        return M
    if compressor["name"] == "rank":
        values, vectors = np.linalg.eigh(M)
        leading = sorted(range(n), key=lambda j: -abs(values[j]))[: compressor["r"]]
        return sum(values[j] * np.outer(vectors[:, j], vectors[:, j]) for j in leading)
    k = compressor["k"]
    k = int(k[:-1]) * n if isinstance(k, str) else k
    places = [(i, j) for i in range(n) for j in range(i, n)]
    sent = np.zeros((n, n))
    for i, j in sorted(places, key=lambda place: -abs(M[place]))[:k]:
        sent[i, j] = sent[j, i] = M[i, j]
    return sent


def fednl_pp(clients, selections, *, compressor, alpha=1.0):
    """FedNL with partial participation, with deterministic C.

    Source: M. Safaryan, R. Islamov, X. Qian, P. Richtárik, "FedNL: Making Newton-type methods applicable to federated
    learning", arXiv:2106.02969 (2022), Algorithm 2, with H_i⁰ = ∇²f_i(x⁰) and w_i⁰ = x⁰.
    """
    m, n = len(clients), clients[0].n
    x = np.zeros(n)
    yield x
    H = [client.hessian(x) for client in clients]
    l = [0.0] * m
    g = [H[i] @ x - clients[i].gradient(x) for i in range(m)]
    for chosen in selections:
        x = np.linalg.inv(sum(H) / m + sum(l) / m * np.eye(n)) @ (sum(g) / m)
        for i in chosen:
            H[i] = H[i] + alpha * compressed(clients[i].hessian(x) - H[i], compressor)
            l[i] = np.sqrt(((H[i] - clients[i].hessian(x)) ** 2).sum())
            g[i] = (H[i] + l[i] * np.eye(n)) @ x - clients[i].gradient(x)
        yield x


def fednew(clients, selections, *, rho=0.1, alpha=0.1, period=1, compressor=None):
    """FedNew: the Newton direction by one pass of ADMM a round.

    Source: A. Elgabli, C. B. Issaid, A. S. Bedi, K. Rajawat, M. Bennis, V. Aggarwal, "FedNew: A communication-efficient
    and privacy-preserving Newton-type method for federated learning", 2022, arXiv 2206.08829, Algorithm 1. Compressed,
    every client sends what its direction has changed by, as it is known.
    """
    m, n = len(clients), clients[0].n
    x, y = np.zeros(n), np.zeros(n)
    own, lam = zeros(clients), zeros(clients)
    yield x, {}
    for k, _ in enumerate(selections, 1):
        if k == 1 or (period and k % period == 0):
            H = [client.hessian(x) + (alpha + rho) * np.eye(n) for client in clients]
        for i, client in enumerate(clients):
            new = np.linalg.inv(H[i]) @ (client.gradient(x) - lam[i] + rho * y)
            own[i] = own[i] + compress(compressor, new - own[i], i, k, 0) if compressor else new
        y = sum(own) / m
        lam = [lam[i] + rho * (own[i] - y) for i in range(m)]
        x = x - y
        yield x, {}


def fedns(clients, selections, *, k=10, mu=1.0, regulariser="outside"):
    """FedNS: Newton's method with sketched square roots of Hessians; the draws are those of the client's stream.

    Source: J. Li, Y. Liu, W. Wang, H. Wu, W. Wang, "FedNS: A fast sketching Newton-type algorithm for federated
    learning", 2024, arXiv 2401.02734, Algorithm 1.
    """
    n = clients[0].n
    x = np.zeros(n)
    yield x, {}
    for round, _ in enumerate(selections, 1):
        H = np.zeros((n, n))
        for i, client in enumerate(clients):
            known = getattr(client, "convexity", 0.0) if regulariser == "outside" else 0.0
            values, Q = np.linalg.eigh(client.hessian(x) - known * np.eye(n))
            root = Q @ np.diag(np.sqrt(np.where(values > 1e-14, values, 0))) @ Q.T
            S = stream(0, "clients", i, round, 0).standard_normal((k, n)) / np.sqrt(k)
            H += (S @ root).T @ (S @ root) + known * np.eye(n)
        g = mean(clients, lambda client: client.gradient(x))  # noqa: B023
        x = x - mu * np.linalg.inv(H / len(clients)) @ g
        yield x, {}


def lbfgs(clients, selections, *, memory=10, c=1e-4):
    """L-BFGS on the mean of the functions of all clients, with matrices written out; one trial point a round.

    Source: D. C. Liu, J. Nocedal, "On the limited memory BFGS method for large scale optimization", 1989, doi
    10.1007/BF01589116, Algorithm 2.1: the BFGS formula (2.5) applied to the last pairs, from a multiple of the
    identity.
    """
    n = clients[0].n
    x = np.zeros(n)
    f, g = both(clients, x)
    pairs = []
    d = -g / max(1, np.linalg.norm(g))
    s = 1.0
    yield x, {"server_step": 0.0}
    for _ in selections:
        trial = x + s * d
        value, gradient = both(clients, trial)
        if value > f + c * s * (g @ d):
            s /= 2
            yield x, {"server_step": 0.0}
            continue
        step, y = trial - x, gradient - g
        if step @ y > 1e-8 * np.linalg.norm(step) * np.linalg.norm(y):
            pairs = [*pairs, (step, y)][-memory:]
        x, f, g = trial, value, gradient
        d = -inverse(pairs, n) @ g if pairs else -g / max(1, np.linalg.norm(g))
        yield x, {"server_step": s}
        s = 1.0


def aggregated_lbfgs(clients, selections, *, memory=10, gamma=None, damping=1e-4):
    """A quasi-Newton step on the models and gradients of the last reply of each client, with matrices written out.

    Source: the step of DIAG, A. Mokhtari et al., "Surpassing gradient descent provably", 2018, arXiv 1611.00347, with
    the BFGS formula in place of the step size.
    """
    n = clients[0].n
    x = np.zeros(n)
    gamma = gamma or 1 / max(client.lipschitz for client in clients)
    last, pairs = {}, []
    yield x
    for chosen in selections:
        step, y = np.zeros(n), np.zeros(n)
        for i in chosen:
            if i in last:
                step = step + (x - last[i][0])
                y = y + (clients[i].gradient(x) - last[i][1])
        if last:
            step, y = step / len(last), y / len(last)
            y = y + damping / gamma * step
            if step @ y > 1e-8 * np.linalg.norm(step) * np.linalg.norm(y):
                pairs = [*pairs, (step, y)][-memory:]
        for i in chosen:
            last[i] = x, clients[i].gradient(x)
        B = inverse(pairs, n) if pairs else gamma * np.eye(n)
        x = sum(point for point, _ in last.values()) / len(last) - B @ sum(g for _, g in last.values()) / len(last)
        yield x


def both(clients, x):
    return mean(clients, lambda client: client.value(x)), mean(clients, lambda client: client.gradient(x))


def inverse(pairs, n):
    step, y = pairs[-1]
    B = (step @ y) / (y @ y) * np.eye(n)
    for step, y in pairs:
        V = np.eye(n) - np.outer(y, step) / (y @ step)
        B = V.T @ B @ V + np.outer(step, step) / (y @ step)
    return B


def nesterov(clients, selections, *, gamma=None, mu=0.0):
    """Accelerated gradient descent with the mean gradient of all clients.

    Source: A. Beck, M. Teboulle, "A fast iterative shrinkage-thresholding algorithm for linear inverse problems", 2009,
    doi 10.1137/080716542, (4.1)–(4.3) without a penalty; with mu the constant step scheme III of Y. Nesterov,
    "Introductory lectures on convex optimization", 2004, (2.2.11).
    """
    gamma = gamma or 1 / max(client.lipschitz for client in clients)
    mu = mean(clients, lambda client: client.convexity) if mu == "mean" else mu
    q = np.sqrt(mu * gamma)
    x = y = np.zeros(clients[0].n)
    t = 1.0
    yield x, {}
    for _ in selections:
        new = y - gamma * mean(clients, lambda client: client.gradient(y))  # noqa: B023
        after = (1 + np.sqrt(1 + 4 * t * t)) / 2
        y = new + ((1 - q) / (1 + q) if q else (t - 1) / after) * (new - x)
        x, t = new, after
        yield x, {}
