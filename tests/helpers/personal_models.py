"""Clients with centres of their own, for methods with personal models."""

from __future__ import annotations

from mpifed.federation.participation.selection import Uniform

EVERYONE = Uniform(share=1.0)


def descend(run, i, theta, centre, lam, lr, epochs, decay=0.0):
    """H full gradient steps on f_i(θ) + (λ/2)‖θ − centre‖² from θ."""
    A, b = run.samples()[i]
    for _ in range(epochs):
        theta = theta - lr * (A.T @ (A @ theta - b) / len(A) + lam * (theta - centre) + decay * theta)
    return theta
