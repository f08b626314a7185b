"""FedNS: Newton's method with sketched square roots of Hessians; the draws are those of the client's stream.

Source: J. Li, Y. Liu, W. Wang, H. Wu, W. Wang, "FedNS: A fast sketching Newton-type algorithm for federated learning",
2024, arXiv 2401.02734, Algorithm 1.
"""

import numpy as np

from mpifed.core.streams import stream

from .newton import mean


def run(clients, selections, *, k=10, mu=1.0, regulariser="outside"):
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
