"""Methods without a server: the models of all nodes as rows of X, the weights W of each round."""

import numpy as np

from .admm import metric, trained
from .compressed import differences
from .exact_penalty import descend, nearest, penalties
from .graphs import default_step, edges, matrices
from .problems import gradients, zeros


def dgd(clients, rounds, graph, *, gamma=None, order="combine-adapt", k0=1):
    """Decentralised gradient descent.

    Source: A. Nedić, A. Ozdaglar, "Distributed subgradient methods for multi-agent optimization", 2009,
    doi:10.1109/TAC.2008.2009515, with a constant step: x_i⁺ = Σ_j W_ij x_j − γ∇f_i(x_i). "adapt-combine": diffusion of
    A. H. Sayed, arXiv 1205.4220, x_i⁺ = Σ_j W_ij φ_j with φ_j = x_j after k0 gradient steps.
    """
    gamma = gamma or default_step(clients, graph)
    X = np.zeros((len(clients), clients[0].n))
    yield X
    for W in matrices(graph, len(clients), rounds):
        if order == "combine-adapt":
            X = W @ X - gamma * gradients(clients, X)
        else:
            for _ in range(k0):
                X = X - gamma * gradients(clients, X)
            X = W @ X
        yield X


def extra(clients, rounds, graph, *, gamma=None):
    """EXTRA.

    Source: W. Shi, Q. Ling, G. Wu, W. Yin, "EXTRA: an exact first-order algorithm for decentralized consensus
    optimization", 2014, arXiv 1404.6264, Algorithm 1 with W̃ = (I + W)/2, all nodes as rows of one matrix.
    """
    m, n = len(clients), clients[0].n
    gamma = gamma or default_step(clients, graph)
    W = matrices(graph, m, 1)[0]
    tilde = (np.eye(m) + W) / 2

    before = np.zeros((m, n))
    last = W @ before - gamma * gradients(clients, before)
    yield before
    yield last
    for _ in range(rounds - 1):
        correction = gradients(clients, last) - gradients(clients, before)
        before, last = last, (np.eye(m) + W) @ last - tilde @ before - gamma * correction
        yield last


def nids(clients, rounds, graph, *, gamma=None):
    """NIDS without a nonsmooth term.

    Source: Z. Li, W. Shi, M. Yan, "A decentralized proximal-gradient method with network independent step-sizes and
    separated convergence rates", 2017, arXiv 1704.07807, Algorithm 1: the first step does not mix.
    """
    m, n = len(clients), clients[0].n
    gamma = gamma or 1 / max(client.lipschitz for client in clients)
    tilde = (np.eye(m) + matrices(graph, m, 1)[0]) / 2
    before = np.zeros((m, n))
    last = before - gamma * gradients(clients, before)
    yield before
    yield last
    for _ in range(rounds - 1):
        correction = gradients(clients, last) - gradients(clients, before)
        before, last = last, tilde @ (2 * last - before - gamma * correction)
        yield last


def led(clients, rounds, graph, *, tau=5, alpha=None, beta=None):
    """Local Exact-Diffusion.

    Source: S. A. Alghunaim, "Local Exact-Diffusion for decentralized optimization and learning", 2023, arXiv
    2302.00620, in its primal-dual form: y is a sum of (I − W)φ.
    """
    alpha = alpha or 1 / (2 * tau * max(client.lipschitz for client in clients))
    beta = beta or 1 / (2 * tau)
    X = Y = np.zeros((len(clients), clients[0].n))
    yield X
    for W in matrices(graph, len(clients), rounds):
        for _ in range(tau):
            X = X - alpha * gradients(clients, X) - beta * Y
        Y = Y + (np.eye(len(clients)) - W) @ X
        X = W @ X
        yield X


def gradient_tracking(clients, rounds, graph, *, gamma, order="combine-adapt"):
    """Gradient tracking.

    Source: G. Qu, N. Li, "Harnessing smoothness to accelerate distributed optimization", 2016, arXiv 1605.07112:
    x_i(t+1) = Σ_j w_ij x_j(t) − η s_i(t);
    s_i(t+1) = Σ_j w_ij s_j(t) + ∇f_i(x_i(t+1)) − ∇f_i(x_i(t));  s_i(0) = ∇f_i(x_i(0)).
    In the other order x_i(t+1) = Σ_j w_ij (x_j(t) − η s_j(t)).
    """
    X = np.zeros((len(clients), clients[0].n))
    G = S = gradients(clients, X)
    yield X
    for W in matrices(graph, len(clients), rounds):
        X = W @ (X - gamma * S) if order == "adapt-combine" else W @ X - gamma * S
        before, G = G, gradients(clients, X)
        S = W @ S + G - before
        yield X


def aug_dgm(clients, rounds, graph, *, gamma):
    """Aug-DGM.

    Source: J. Xu, S. Zhu, Y. C. Soh, L. Xie, "Augmented distributed gradient methods for multi-agent optimization under
    uncoordinated constant stepsizes", 2015, doi 10.1109/CDC.2015.7402509, with one step size.
    """
    X = np.zeros((len(clients), clients[0].n))
    G = S = gradients(clients, X)
    yield X
    for W in matrices(graph, len(clients), rounds):
        X = W @ (X - gamma * S)
        before, G = G, gradients(clients, X)
        S = W @ (S + G - before)
        yield X


def k_gt(clients, rounds, graph, *, gamma, k0=5, eta=1.0):
    """K-GT.

    Source: Y. Liu, T. Lin, A. Koloskova, S. U. Stich, "Decentralized gradient tracking with local steps", 2023,
    arXiv 2301.01313, Algorithm 1 with c = 0 at the start.
    """
    X = C = np.zeros((len(clients), clients[0].n))
    yield X
    for W in matrices(graph, len(clients), rounds):
        Y = X
        for _ in range(k0):
            Y = Y - gamma * (gradients(clients, Y) + C)
        X, C = W @ (X + eta * (Y - X)), C + (Y - X - W @ (Y - X)) / (k0 * gamma)
        yield X


def choco(clients, rounds, graph, *, compressor, gamma, eta=None):
    """CHOCO-SGD with full gradients.

    Source: A. Koloskova, S. U. Stich, M. Jaggi, "Decentralized stochastic optimization and gossip algorithms with
    compressed communication", 2019, arXiv 1902.00340, Algorithm 2.
    """
    eta = eta or 1 / (2 * max(client.lipschitz for client in clients))
    X = H = np.zeros((len(clients), clients[0].n))
    yield X
    for round, W in enumerate(matrices(graph, len(clients), rounds), 1):
        X = X - eta * gradients(clients, X)
        H = H + differences(compressor, [X - H], round)[0]
        X = X + gamma * (W @ H - H)
        yield X


def motef(clients, rounds, graph, *, compressor, gamma, lam, eta=None):
    """MoTEF with full gradients; with λ = 1 it is BEER.

    Source: R. Islamov, Y. Gao, S. U. Stich, "Towards faster decentralized stochastic optimization with communication
    compression", 2024, arXiv 2405.20114, Algorithm 1.
    """
    eta = eta or lam * gamma / (2 * max(client.lipschitz for client in clients))
    X = H = G = np.zeros((len(clients), clients[0].n))
    V = U = gradients(clients, X)
    yield X
    for round, W in enumerate(matrices(graph, len(clients), rounds), 1):
        before = U
        X = X + gamma * (W @ H - H) - eta * V
        U = (1 - lam) * U + lam * gradients(clients, X)
        V = V + gamma * (W @ G - G) + U - before
        sent = differences(compressor, [X - H, V - G], round)
        H, G = H + sent[0], G + sent[1]
        yield X


def beer(clients, rounds, graph, *, compressor, gamma, eta=None):
    """BEER with full gradients.

    Source: H. Zhao, B. Li, Z. Li, P. Richtárik, Y. Chi, "BEER: Fast O(1/T) rate for decentralized nonconvex
    optimization with communication compression", 2022, arXiv 2201.13320, Algorithm 1.
    """
    yield from motef(clients, rounds, graph, compressor=compressor, gamma=gamma, eta=eta, lam=1.0)


def lt_admm(clients, rounds, graph, *, tau=5, gamma=None, beta=None):
    """LT-ADMM with exact gradients: every node keeps one auxiliary vector for each edge.

    Source: X. Ren, N. Bastianello, K. H. Johansson, T. Parisini, "Communication-efficient stochastic distributed
    learning", 2025, arXiv 2501.13516, as the library decent_bench has it, with ρ = 1 and relaxation 1/2; its β is 2
    ``beta``. z_ij⁰ = x⁰ = 0.
    """
    m = len(clients)
    pairs = edges(graph, m, 0, 1)
    pairs = pairs + [(j, i) for i, j in pairs]
    degree = [sum(1 for i, _ in pairs if i == k) for k in range(m)]
    gamma = 1 / (2 * tau * max(client.lipschitz for client in clients)) if gamma is None else gamma
    beta = 1 / (2 * tau * (max(degree) + 1)) if beta is None else beta
    x, z = zeros(clients), {pair: np.zeros(clients[0].n) for pair in pairs}
    yield np.array(x)
    for _ in range(rounds):
        for i in range(m):
            pull = degree[i] * x[i] - sum(z[pair] for pair in pairs if pair[0] == i)
            phi = x[i]
            for _ in range(tau):
                phi = phi - gamma * clients[i].gradient(phi) - 2 * beta * pull
            x[i] = phi
        z = {(i, j): (z[i, j] - z[j, i]) / 2 + x[j] for i, j in pairs}
        yield np.array(x)


def fedgia_graph(clients, selections, graph, *, k0=10, H="diagonal", t=1.0, average="tracked"):
    """FedGiA on a graph as ADMM: node j keeps a copy y_j of the server's model, and every edge to a copy has a
    multiplier.

    Source: docs/studies/graph-methods.md: minimise (1/m) Σ f_i(x_i) subject to x_i = y_j wherever W_ij > 0, with the
    penalty σW_ij, in the order y, x, π of S. Zhou and G. Y. Li, "FedGiA", 2022, arXiv 2205.01438. σ = t max r_i/m; x⁰ =
    π⁰ = 0.
    """
    m, n = len(clients), clients[0].n
    W = matrices(graph, m, 1)[0]
    sigma = t * max(client.lipschitz for client in clients) / m
    x = zeros(clients)
    y = zeros(clients)
    given = zeros(clients)
    pi = np.zeros((m, m, n))
    yield np.array(given)
    for chosen in selections:
        for i in range(m):
            g, total = clients[i].gradient(given[i]) / m, pi[i].sum(axis=0)
            if i in chosen:
                x[i], new = trained(given[i], g, total, metric(clients[i], H) / m, sigma, k0)  # (12), (13)
            else:
                x[i], new = given[i], -g  # (15), (16)
            for j in range(m):
                apart = 0 if average == "plain" else sigma * (given[i] - y[j])
                pi[i, j] = pi[i, j] + W[i, j] * (new - total + apart)
        y = [sum(W[i, j] * x[i] + pi[i, j] / sigma for i in range(m)) for j in range(m)]
        given = [sum(W[i, j] * y[j] for j in range(m)) for i in range(m)]
        yield np.array(given)


def fedepm_graph(clients, selections, graph, *, lam=None, eta=None, **options):
    """FedEPM on a graph without noise: an elastic net over each neighbourhood, node by node and number by number.

    Source: docs/studies/graph-methods.md: alternating minimisation of Σ f_i(w_i) + Σ_ij W_ij φ(w_i − x_j), with the
    steps of S. Zhou and G. Y. Li, "Exact penalty method for federated learning", 2022, arXiv 2208.11231, Algorithm 2.
    z_i⁰ = 0.
    """
    m = len(clients)
    penalty = penalties(lam, eta, m, min(map(len, selections)))
    w = zeros(clients)
    z = zeros(clients)
    x = zeros(clients)
    yield np.array(x)
    for t, (W, chosen) in enumerate(zip(matrices(graph, m, len(selections)), selections, strict=True)):
        for i in chosen:
            z[i] = w[i] = descend(clients[i], w[i], W[i] @ x, t, W[i], x, penalty, **options)
        x = [nearest(W[j], z, penalty, 0.0, z[j]) for j in range(m)]
        yield np.array(x)
