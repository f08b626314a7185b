"""FedDyn with full gradients.

Source: D. A. E. Acar et al., "Federated learning based on dynamic regularization", 2021, arXiv 2111.04263, Algorithm 1.
Its local problem min L_k(θ) − ⟨∇L_k(θ_k^{t−1}), θ⟩ + (α/2)‖θ − θ^{t−1}‖² is solved by gradient steps from the server's
model, and the gradient kept by a client follows from its recursion, ∇L_k(θ_k^t) = ∇L_k(θ_k^{t−1}) − α(θ_k^t − θ^{t−1}).
Only clients that take part change theirs.
"""

import numpy as np

from .problems import zeros
from .step_sizes import LOG2, step_size


def run(clients, selections, *, alpha=0.1, k0=5, step=LOG2, epochs=0):
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
