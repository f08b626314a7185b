"""FLAME and pFedMe as the released program of FLAME runs them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mpifed import Array, Local
from mpifed.algorithms import flame, pfedme


def own(f: Local) -> Array:
    """A separate initial model for each client (c, n): θ_i = s_i ∘ x⁰, with random signs s_i.

    The initial weights are uniform in ±a, so θ_i has the same distribution and, over the clients, mean 0.
    Source: the released program, src/update.py, where each client creates its own network, apart from the global model.
    """
    signs = np.stack([rng.integers(2, size=f.n) for rng in f.rng])
    return f.initial() * (2 * signs - 1).astype(f.initial().dtype)


class OwnStart(flame.Flame):
    """FLAME whose personal models start from separate random weights, as in the released program."""

    def join(self, f: Local) -> flame.Client:
        return super().join(f)._replace(theta=own(f))


class OwnStartPFedMe(pfedme.PFedMe):
    """pFedMe whose personal models start from separate random weights, as in the released program."""

    def join(self, f: Local) -> pfedme.Client:
        return super().join(f)._replace(theta=own(f))


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

    watches = ("released_accuracy", "released_objective")

    def join(self, f: Local) -> Any:
        return Client(*super().join(f)._replace(theta=own(f)), seen=f.initial())

    def update(self, f: Local, client: Any, w: Array) -> tuple[Any, Array]:
        state, z = super().update(f, flame.Client(*client[:4]), w)
        return Client(*state, seen=np.tile(w, (len(f), 1))), z

    def watch(self, f: Local, client: Any, x: Array) -> tuple[Array, ...]:
        return f.accuracy(client.seen)[0], f.value(client.seen)

    def report(self, server: Any, watched: dict[str, float], m: int) -> dict[str, float]:
        return {name: total / m for name, total in watched.items()}
