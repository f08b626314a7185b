"""FedNL: Newton's method with Hessians that the server learns from compressed differences, with deterministic C.

Source: M. Safaryan, R. Islamov, X. Qian, P. Richtárik, "FedNL: Making Newton-type methods applicable to federated
learning", arXiv:2106.02969 (2022), Algorithm 1 (option A: its option 1, B: its option 2) and Algorithm 3, with
H_i⁰ = ∇²f_i(x⁰). All clients take part, whoever is selected.
"""

import numpy as np

from .problems import mean_value


def run(clients, selections, *, compressor, alpha=1.0, option="B", line_search=False, c=0.49, shrink=0.5):
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
