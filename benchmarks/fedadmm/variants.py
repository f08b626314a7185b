"""FedAvg and FedProx with the step sizes of section 5.3 of FedADMM, which depend on the number of clients."""

from __future__ import annotations

from typing import Any

from mpifed import Array, Local
from mpifed.algorithms import fedavg, fedprox


class FedAvg(fedavg.FedAvg):
    """FedAvg with γ_k = a/(m log2(k + 2)); a = 0.5 d gives 0.5 d/m for every m.  Source: fedadmm, section 5.3."""

    def iterate(self, f: Local, w: Array, x: Array, gamma: Array | float, memory: Any) -> tuple[Array, Any]:
        """(3.16) with γ/m in place of γ."""
        return super().iterate(f, w, x, gamma / f.m, memory)


class FedProx(fedprox.FedProx):
    """FedProx with γ_k = a/(m log2(k + 2)); a = 0.5 d gives 0.5 d/m for every m.  Source: fedadmm, section 5.3."""

    def iterate(self, f: Local, w: Array, x: Array, gamma: Array | float, memory: Any) -> tuple[Array, Any]:
        """(3.17) with γ/m in place of γ."""
        return super().iterate(f, w, x, gamma / f.m, memory)
