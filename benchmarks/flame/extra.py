"""What FLAME's benchmarks need beside mpifed: the start of the released program, and what that program would have recorded."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mpifed.algorithms import flame, pfedme
from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.results.result import Result, load


def own(f: Local) -> Array:
    """A first model of each client's own (c, n): θ_i = s_i ∘ x⁰, the first model with the sign of every weight drawn anew.

    The first weights are uniform in ±a, so θ_i has their law and, over the clients, mean 0.
    Source: the released program, src/update.py, where each client makes a network of its own; the global model is another.
    """
    signs = np.stack([rng.integers(2, size=f.n) for rng in f.rng])
    return f.initial() * (2 * signs - 1).astype(f.start.dtype)


class OwnStart(flame.Flame):
    """FLAME whose personal models start from random weights of each client's own, as in the released program."""

    def join(self, f: Local) -> flame.Client:
        return super().join(f)._replace(theta=own(f))


class OwnStartPFedMe(pfedme.PFedMe):
    """pFedMe whose personal models start from random weights of each client's own, as in the released program."""

    def join(self, f: Local) -> pfedme.Client:
        return super().join(f)._replace(theta=own(f))


class Client(NamedTuple):
    """The state of FLAME's clients, and ``seen`` (c, n), the global model that each was sent last."""

    theta: Array
    w: Array
    pi: Array
    z: Array
    seen: Array


class Released(flame.Flame):
    """FLAME as OwnStart, which also records what the released program does.

    released_accuracy = (1/m) Σ_i accuracy_i(v_i), released_objective = (1/m) Σ_i f_i(v_i), v_i the global model that client i
    was sent when it was chosen last: one round late with everyone training, staler without.
    Source: the released program, src/update.py (test_acc_global), src/utils.py (average_loss_acc).
    """

    watches = ("released_accuracy", "released_objective")

    def join(self, f: Local) -> Any:
        return Client(*super().join(f)._replace(theta=own(f)), seen=f.initial())

    def update(self, f: Local, client: Any, w: Array) -> tuple[Any, Array]:
        state, z = super().update(f, flame.Client(*client[:4]), w)
        return Client(*state, seen=np.tile(w, (len(f), 1))), z

    def watch(self, f: Local, client: Any) -> tuple[Array, ...]:
        return f.accuracy(client.seen)[0], f.value(client.seen)

    def report(self, server: Any, watched: dict[str, float], m: int) -> dict[str, float]:
        return {name: total / m for name, total in watched.items()}


def late(name: str) -> Callable[[Result], Array]:
    """The column ``name`` one round late: that of round r − 1 in round r, nan in round 0. Source: errata, FLAME."""

    def column(result: Result) -> Array:
        return np.concatenate([[np.nan], np.asarray(result.rounds[name], float)[:-1]])

    return column


def gap(result: Result) -> Array:
    """How far personal models are ahead: f at w less (1/m) Σ_i f_i(θ_i). Source: flame, sections 5.2.2 and 5.2.6."""
    return np.asarray(result.rounds["objective"] - result.rounds["personal_objective"], float)


def stale(result: Result) -> float:
    """max_r |released_accuracy(r) − accuracy(r − 1)|: what being stale adds to being one round late."""
    return float(np.nanmax(np.abs(result.rounds["released_accuracy"] - late("accuracy")(result))))


def speedup(result: Result) -> float:
    """Rounds of FedAvg over rounds, same block and draw; a run that its most rounds ended counts with these.

    Source: flame, Table III, the factors in brackets; nan where the run of FedAvg is not there.
    """
    if result.path is None:
        return float("nan")
    path = Path(result.path)
    others = [
        path.with_name(path.name.replace(f"-{row}-seed-", "-fedavg-seed-"))
        for row in ROWS
        if f"-{row}-seed-" in path.name
    ]
    try:
        return load(others[0]).cr / result.cr if others else float("nan")
    except UserError:
        return float("nan")


ROWS = ("fedadmm", "flame-local-centre", "flame-common-start", "pfedme-common-start", "flame", "pfedme", "fedavg")
MEASURES = {"speedup": speedup, "stale": stale}
COLUMNS = {"late_accuracy": late("accuracy"), "gap": gap}
