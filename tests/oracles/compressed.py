"""Gradients in compressed messages: DIANA, MARINA, error feedback; draws are those of the client's stream."""

import copy

import numpy as np

from mpifed.core.streams import stream


def compress(compressor, x, client, round, call):
    """C(x) of a client in a round's ``call``."""
    return sent(compressor, x, stream(0, "clients", client, round, call))


def sent(compressor, x, rng):
    """C(x), with the draws of a generator."""
    n, k = len(x), compressor.get("k")
    if compressor["name"] == "topk":
        kept = sorted(range(n), key=lambda j: (-abs(x[j]), j))[:k]
        return np.array([x[j] if j in kept else 0.0 for j in range(n)])
    if compressor["name"] == "randk":
        seed = int(rng.integers(1 << 64, dtype=np.uint64))
        kept = stream(seed, "compression").choice(n, k, replace=False, shuffle=False).tolist()
        return np.array([x[j] * n / k if j in kept else 0.0 for j in range(n)])
    assert compressor["name"] == "randseqk"
    first = int(rng.integers(n))
    return np.array([x[j] * n / k if (j - first) % n < k else 0.0 for j in range(n)])


def omega(compressor, n):
    return n / compressor["k"] - 1


def differences(compressor, parts, round):
    """C of the rows of each of the ``parts`` (m, n) in turn, drawn from the node's stream of a round; contractive."""
    scale = 1.0 if compressor["name"] == "topk" else compressor["k"] / parts[0].shape[1]
    rngs = [stream(0, "clients", i, round, 0) for i in range(len(parts[0]))]
    return [scale * np.array([sent(compressor, x, rng) for x, rng in zip(X, rngs, strict=True)]) for X in parts]


def diana(clients, selections, *, compressor, gamma=None):
    """DIANA with the clients that take part.

    Source: K. Mishchenko, E. Gorbunov, M. Takáč, P. Richtárik, "Distributed learning with compressed gradient
    differences", 2019, arXiv 1901.09269, Algorithm 1, for unbiased compressors with ω: α = 1/(1 + ω) and γ = 1/((1 +
    6ω/m) max L_i) of E. Gorbunov, F. Hanzely, P. Richtárik, 2019, arXiv 1905.11261. A client that does not take part
    sends the message 0 of a compressor that sends with probability |S|/m, and m/|S| times as much.
    """
    m, n = len(clients), clients[0].n
    alone = omega(compressor, n)
    if gamma is None:
        together = (1 + alone) * m / min(map(len, selections)) - 1
        gamma = 1 / ((1 + 6 * together / m) * max(client.lipschitz for client in clients))
    x, h = np.zeros(n), [np.zeros(n) for _ in clients]
    yield x
    for round, chosen in enumerate(selections, 1):
        messages = [np.zeros(n) for _ in clients]
        for i in chosen:
            messages[i] = m / len(chosen) * compress(compressor, clients[i].gradient(x) - h[i], i, round, 0)
        x = x - gamma * sum(h[i] + messages[i] for i in range(m)) / m
        h = [h[i] + len(chosen) / m / (1 + alone) * messages[i] for i in range(m)]
        yield x


def marina(clients, selections, *, compressor, gamma=None, p=None):
    """MARINA with the clients that take part between whole gradients.

    Source: E. Gorbunov, K. Burlachenko, Z. Li, P. Richtárik, "MARINA: Faster non-convex distributed learning with
    compression", 2021, arXiv 2102.07845, Algorithms 1 and 4, and Theorem 2.1 for the step.
    """
    m, n = len(clients), clients[0].n
    alone = omega(compressor, n)
    p = 1 / (1 + alone) if p is None else p
    if gamma is None:
        together = (1 + alone) * m / min(map(len, selections)) - 1
        L = np.sqrt(np.mean([client.lipschitz**2 for client in clients]))
        gamma = 1 / (L * (1 + np.sqrt((1 - p) * together / (p * m))))
    x = np.zeros(n)
    g = sum(client.gradient(x) for client in clients) / m
    yield x
    for round, chosen in enumerate(selections, 1):
        before, x = x, x - gamma * g
        if stream(0, "server", round).random() < p:
            g = sum(client.gradient(x) for client in clients) / m
        else:
            changes = {i: clients[i].gradient(x) - clients[i].gradient(before) for i in chosen}
            g = g + sum(compress(compressor, v, i, round, 0) for i, v in changes.items()) / len(chosen)
        yield x


def ef21(clients, selections, *, compressor, gamma=None, start="compressed", gradient=None):
    """EF21 with the clients that take part, and what its extensions share.

    Source: P. Richtárik, I. Sokolov, I. Fatkhullin, "EF21: A new, simpler, theoretically better, and practically faster
    error feedback", 2021, arXiv 2106.05203, Algorithm 2 and Theorem 1. A client that does not take part keeps its g_i.
    """
    m = len(clients)
    if gamma is None:
        gamma = 1 / (mean(clients) + root(clients) * np.sqrt(ratio(clients, compressor, min(map(len, selections)) / m)))
    x = np.zeros(clients[0].n)
    g = first(clients, x, compressor, start)
    yield x
    for round, chosen in enumerate(selections, 1):
        x = x - gamma * sum(g) / m
        for i in chosen:
            v = clients[i].gradient(x) if gradient is None else gradient(clients[i], x, i, round)
            g[i] = g[i] + contracted(compressor, v - g[i], i, round)
        yield x


def first(clients, x, compressor, start):
    G = [client.gradient(x) for client in clients]
    return G if start == "full" else [contracted(compressor, g, i, 0) for i, g in enumerate(G)]


def contracted(compressor, x, i, round):
    scale = 1.0 if compressor["name"] == "topk" else 1 / (1 + omega(compressor, len(x)))
    return scale * compress(compressor, x, i, round, 0)


def mean(clients):
    return np.mean([client.lipschitz for client in clients])


def root(clients):
    return np.sqrt(np.mean([client.lipschitz**2 for client in clients]))


def ratio(clients, compressor, share=1.0):
    """β/θ."""
    delta = compressor["k"] / clients[0].n * share
    theta = 1 - np.sqrt(1 - delta)
    return (1 - delta) / theta / theta


def ef21_hb(clients, selections, *, compressor, gamma=None, start="compressed", eta=0.5):
    """EF21-HB with the clients that take part.

    Source: I. Fatkhullin et al., "EF21 with bells & whistles", 2021, arXiv 2110.03294, Algorithm 6; the step as the
    docstring of the method derives it.
    """
    m = len(clients)
    if gamma is None:
        spread = root(clients) * np.sqrt(ratio(clients, compressor, min(map(len, selections)) / m))
        gamma = (1 - eta) / (mean(clients) / (1 - eta) + spread)
    x = np.zeros(clients[0].n)
    g = first(clients, x, compressor, start)
    v = sum(g) / m
    yield x
    for round, chosen in enumerate(selections, 1):
        x = x - gamma * v
        for i in chosen:
            g[i] = g[i] + contracted(compressor, clients[i].gradient(x) - g[i], i, round)
        v = eta * v + sum(g) / m
        yield x


def ef21_bc(clients, selections, *, compressor, down, gamma=None, start="compressed"):
    """EF21-BC, in which all clients take part.

    Source: I. Fatkhullin et al., "EF21 with bells & whistles", 2021, arXiv 2110.03294, Algorithm 5; the step as the
    docstring of the method derives it.
    """
    m = len(clients)
    if gamma is None:
        A, B = ratio(clients, compressor), ratio(clients, down)
        gamma = 1 / (mean(clients) + root(clients) * np.sqrt(16 * B + 2 * A * (1 + 8 * B)))
    x = np.zeros(clients[0].n)
    w = first(clients, x, compressor, start)
    g = sum(w) / m
    yield x
    for round in range(1, len(selections) + 1):
        x = x - gamma * g
        w = [w[i] + contracted(compressor, clients[i].gradient(x) - w[i], i, round) for i in range(m)]
        g = g + compress(down, sum(w) / m - g, 0, round, 0)
        yield x


def ef21_sgd(clients, selections, *, batch_size, **options):
    """EF21-SGD with the clients that take part; mini-batches are those of the clients' streams.

    Source: I. Fatkhullin et al., "EF21 with bells & whistles", 2021, arXiv 2110.03294, Algorithm 2.
    """

    def gradient(client, x, i, round):
        return batch(client, i, round, batch_size).gradient(x)

    return ef21(clients, selections, gradient=gradient, **options)


def batch(client, i, round, size):
    """f_i on the samples of one mini-batch."""
    rows = stream(0, "clients", i, round, 0).permuted(np.arange(client.d)[None], axis=1)[0, :size]
    found = copy.copy(client)
    found.A, found.b, found.d = client.A[rows], client.b[rows], len(rows)
    return found


def ef21_page(clients, selections, *, compressor, batch_size, p=None, gamma=None, start="compressed"):
    """EF21-PAGE with the clients that take part, one coin for all.

    Source: I. Fatkhullin et al., "EF21 with bells & whistles", 2021, arXiv 2110.03294, Algorithm 3; the step as the
    docstring of the method derives it.
    """
    m, n = len(clients), clients[0].n
    if p is None:
        p = batch_size / (batch_size + np.mean([client.d for client in clients]))
    if gamma is None:
        A = ratio(clients, compressor, min(map(len, selections)) / m)
        noise = np.mean([variance(client, batch_size) for client in clients])
        inner = 4 * A * root(clients) ** 2 + 2 * (3 * A + 1 / p) * (1 - p) * noise
        gamma = 1 / (mean(clients) + np.sqrt(inner))
    x = np.zeros(n)
    v = [client.gradient(x) for client in clients]
    g = first(clients, x, compressor, start)
    before = [x] * m
    yield x
    for round, chosen in enumerate(selections, 1):
        x = x - gamma * sum(g) / m
        whole = stream(0, "server", round).random() < p
        for i in chosen:
            part = batch(clients[i], i, round, batch_size)
            v[i] = clients[i].gradient(x) if whole else v[i] + part.gradient(x) - part.gradient(before[i])
            g[i] = g[i] + contracted(compressor, v[i] - g[i], i, round)
            before[i] = x
        yield x


def variance(client, size):
    return 0.0 if size >= client.d else client.lipschitz**2 * client.d * (client.d - size) / size / (client.d - 1)
