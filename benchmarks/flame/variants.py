"""FLAME and pFedMe as the released program of FLAME runs them."""

from typing import Any, NamedTuple

import numpy as np

from mpifed.algorithms import flame, pfedme
from mpifed.extend import Array, Local
from mpifed.federation.traits import Max, RecordValues, Sum

VISIBLE = 1e-20  # changes of θ_i below this share of ‖θ_i‖² are rounding


def own(f: Local) -> Array:
    """A separate initial model for each client (c, n): θ_i = s_i ∘ x⁰, with random signs s_i.

    The initial weights are uniform in ±a, so θ_i has the same distribution and, over the clients, mean 0.
    Source: the released program, src/update.py, where each client creates its own network, apart from the global model.
    """
    signs = np.stack([rng.integers(2, size=f.n) for rng in f.rng])
    return f.initial() * (2 * signs - 1).astype(f.initial().dtype)


class OwnStart(flame.Flame):
    """FLAME whose personal models start from separate random weights, as in the released program."""

    def init_client(self, f: Local) -> flame.Client:
        return super().init_client(f)._replace(theta=own(f))


class OwnStartPFedMe(pfedme.PFedMe):
    """pFedMe whose personal models start from separate random weights, as in the released program."""

    def init_client(self, f: Local) -> pfedme.Client:
        return super().init_client(f)._replace(theta=own(f))


class Client(NamedTuple):
    """The state of FLAME's clients, and ``seen`` (c, n), the global model that each received last."""

    theta: Array
    w: Array
    pi: Array
    z: Array
    seen: Array


class Released(flame.Flame):
    """FLAME as OwnStart, which also records what the released program records.

    released_accuracy = (1/m) Σ_i accuracy_i(v_i) and released_objective = (1/m) Σ_i f_i(v_i), where v_i is the global
    model that client i received when it was last selected: one round old with full participation, older without.
    Source: the released program, src/update.py (test_acc_global), src/utils.py (average_loss_acc).
    """

    def init_client(self, f: Local) -> Any:
        return Client(*super().init_client(f)._replace(theta=own(f)), seen=f.initial())

    def update(self, f: Local, client: Any, w: Array) -> tuple[Any, Array]:
        state, z = super().update(f, flame.Client(*client[:4]), w)
        return Client(*state, seen=np.tile(w, (len(f), 1))), z

    def record(self, f: Local, client: Any, x: Array) -> RecordValues:
        return {"released_accuracy": Sum(f.accuracy(client.seen)[0]), "released_objective": Sum(f.value(client.seen))}

    def report(self, server: Any, row: dict[str, float], m: int) -> dict[str, float]:
        return {name: total / m for name, total in row.items()}


class CheckedClient(NamedTuple):
    """The state of FLAME's clients, and what the theorems speak of, summed over the rounds in which each was selected.

    moved_theta ‖θ_i⁺ − θ_i‖², moved_w ‖w_i⁺ − w_i‖², error ε_i of (13); worst the largest ε_i, and lower and upper the
    largest ratios of the two sides of (14): (c, 1) each.
    """

    theta: Array
    w: Array
    pi: Array
    z: Array
    moved_theta: Array
    moved_w: Array
    error: Array
    worst: Array
    lower: Array
    upper: Array


class Checked(flame.Flame):
    """FLAME that records what Theorems 1 and 2 and Lemma 1 speak of, beside (6) and (8).

    lower = ‖g_i‖²/(2α²(L² + λ²)‖θ_i⁺ − θ_i‖²) and upper = μ²‖θ_i⁺ − θ_i‖²/‖g_i‖² are at most 1 by (14), where
    g_i = ∇_θ L_i before the update, L = max r_i of the client, and μ = αλ for convex f_i, else α(λ − L).
    Source: flame, (13), (14), (16), (19).
    """

    envelope: bool = True
    lagrangian: bool = True
    convex: bool = True

    def init_client(self, f: Local) -> Any:
        return CheckedClient(*super().init_client(f), *(f.zeros(1) for _ in range(6)))

    def update(self, f: Local, client: Any, w: Array) -> tuple[Any, Array]:
        state, z = super().update(f, flame.Client(*client[:4]), w)
        L, alpha = f.lipschitz()[:, None], 1 / f.m
        mu = alpha * (self.lam - (0 if self.convex else L))
        before, error = (row(self.slope(f, theta, client.w)) for theta in (client.theta, state.theta))
        theta, own = row(state.theta - client.theta), row(state.w - client.w)
        visible = theta > VISIBLE * row(state.theta)
        lower = np.divide(before, 2 * alpha**2 * (L**2 + self.lam**2) * theta, where=visible, out=np.zeros_like(theta))
        upper = np.divide(mu**2 * theta, before, where=visible, out=np.zeros_like(theta))
        return CheckedClient(
            *state,
            client.moved_theta + theta,
            client.moved_w + own,
            client.error + error,
            np.maximum(client.worst, error),
            np.maximum(client.lower, lower),
            np.maximum(client.upper, upper),
        ), z

    def slope(self, f: Local, theta: Array, centre: Array) -> Array:
        """∇_θ L_i = α(∇f_i(θ_i) + λ(θ_i − w_i))."""
        return (f.grad(theta) + self.lam * (theta - centre)) / f.m

    def record(self, f: Local, client: Any, x: Array) -> RecordValues:
        away = client.w - x
        slope_w = self.lam / f.m * (client.w - client.theta) + client.pi + self.rho * away
        slopes = (self.slope(f, client.theta, client.w), slope_w, away)
        totals = {name: Sum(getattr(client, name)[:, 0]) for name in ("moved_theta", "moved_w", "error")}
        names = ("slope_theta", "slope_w", "slope_pi")
        own = {name: Sum(row(slope)[:, 0]) for name, slope in zip(names, slopes, strict=True)}
        worst = {name: Max(getattr(client, name)[:, 0]) for name in ("worst", "lower", "upper")}
        return super().record(f, client, x) | totals | own | worst | {"smoothest": Max(f.lipschitz())}

    def report(self, server: Any, row: dict[str, float], m: int) -> dict[str, float]:
        return row | super().report(server, row, m)


def row(V: Array) -> Array:
    """‖v_i‖² of rows V (c, n), as a column (c, 1)."""
    return np.vecdot(V, V)[:, None]
