"""Noise on uploads, and what it protects."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.federation.local import Local


def laplace(f: Local, scale: Array) -> Array:
    """Laplace noise (c, n) of scale (c,), each client from its own stream."""
    return (
        np.stack([rng.laplace(0.0, s, f.n) for rng, s in zip(f.rng, scale, strict=True)]).astype(f.block.b.dtype)
        if len(f)
        else f.zeros()
    )


def log_ratio(W: Array, noise: Array) -> Array:
    """log10(‖w_i‖/‖ε_i‖): (c,), infinite where there is no noise (fedepm, the SNR of section VII.C)."""
    w, e = np.sqrt(np.vecdot(W, W)), np.sqrt(np.vecdot(noise, noise))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(e > 0, np.log10(w / np.where(e > 0, e, 1)), np.inf)


def accounting() -> Any:
    """The library dp-accounting; UserError where it is missing."""
    try:
        import dp_accounting
        import dp_accounting.rdp
    except ImportError:
        raise UserError(
            "noise = \"clipped\" accounts its budget with dp-accounting: pip install 'mpifed[privacy]'"
        ) from None
    return dp_accounting


class Budget(NamedTuple):
    """``releases`` of Laplace noise, each ``epsilon``-differentially private for the samples of one client."""

    epsilon: float
    releases: int

    def basic(self) -> float:
        """The ε spent by basic composition: the sum."""
        return self.epsilon * self.releases

    def accounted(self, delta: float) -> float:
        """The ε at ``delta`` by Rényi accounting of the Laplace mechanism, at most the sum.

        Raises UserError where the library dp-accounting is missing.
        """
        if self.releases == 0:
            return 0.0
        dp_accounting = accounting()
        accountant = dp_accounting.rdp.RdpAccountant(neighboring_relation=dp_accounting.NeighboringRelation.REPLACE_ONE)
        accountant.compose(dp_accounting.LaplaceDpEvent(1 / self.epsilon), self.releases)
        return min(self.basic(), float(accountant.get_epsilon(delta)))
