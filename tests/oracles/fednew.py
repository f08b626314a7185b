"""FedNew: the Newton direction by one pass of ADMM a round.

Source: A. Elgabli, C. B. Issaid, A. S. Bedi, K. Rajawat, M. Bennis, V. Aggarwal, "FedNew: A communication-efficient and
privacy-preserving Newton-type method for federated learning", 2022, arXiv 2206.08829, Algorithm 1. Compressed, every
client sends what its direction has changed by, as it is known.
"""

import numpy as np

from .compressors import compress
from .problems import zeros


def run(clients, selections, *, rho=0.1, alpha=0.1, period=1, compressor=None):
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
