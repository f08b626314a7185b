"""FedNL with partial participation, with deterministic C.

Source: M. Safaryan, R. Islamov, X. Qian, P. Richtárik, "FedNL: Making Newton-type methods applicable to federated
learning", arXiv:2106.02969 (2022), Algorithm 2, with H_i⁰ = ∇²f_i(x⁰) and w_i⁰ = x⁰.
"""

import numpy as np

from .fednl import compressed


def run(clients, selections, *, compressor, alpha=1.0):
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
