"""q-FedAvg: local steps, then one of the server that counts the clients with larger losses more.

Source: T. Li, M. Sanjabi, A. Beirami, V. Smith, "Fair resource allocation in federated learning", 2020, arXiv
1905.10497, Algorithm 2 with L = 1/lr.
"""

import numpy as np


def run(clients, selections, *, q=1.0, k0=5, lr=0.01, epochs=0):
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
