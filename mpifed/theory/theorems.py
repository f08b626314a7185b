"""Which theorem is certified for which method."""

from __future__ import annotations

import importlib
from typing import Any

from mpifed.theory.statements import Certificate, Condition, Known, nothing

THEOREMS = {
    "fedgia": "mpifed.theory.fedgia:certificate",
    "fedadmm": "mpifed.theory.fedadmm:certificate",
    "flame": "mpifed.theory.flame:certificate",
    "fedepm": "mpifed.theory.fedepm:certificate",
    "feddcd": "mpifed.theory.feddcd:feddcd",
    "accfeddcd": "mpifed.theory.feddcd:accfeddcd",
    "fedavg": "mpifed.theory.gradient_descent:fedavg",
    "gd": "mpifed.theory.gradient_descent:gd",
    "proxskip": "mpifed.theory.proxskip:certificate",
    "ad-admm": "mpifed.theory.ad_admm:certificate",
}
DELAYED = ("ad-admm", "feddcd")  # whose theorems speak of old uploads, or whose uploads are never old
WHY_NOT = {
    "fedopt": "those of arXiv:2003.00295 and 2301.09604 ask for bounds of gradients and of variances that no run shows",
    "fedprox": "that of arXiv:1812.06127 needs the dissimilarity B of the f_i at every point, which no run shows",
    "scaffold": "that of arXiv:1910.06378 holds up to constants that it does not state",
    "fedpd": "that of arXiv:2005.11418 asks for an accuracy of the local problems that a number of steps does not give",
    "sfedavg": "the FedEPM paper states none for it",
    "sfedprox": "the FedEPM paper states none for it",
    "pfedme": "that of arXiv:2006.08848 asks for an accuracy of θ_i and bounds of variance that epochs do not give",
    "ditto": "those of arXiv:2012.04221 begin from a rate of the global model, and bound norms of all iterates",
    "apfl": "those of arXiv:2003.13461 ask for step sizes by a theorem, and for bounds of variance and diversity",
    "flame-dp": "its uploads are clipped and have noise, of which the theorems of FLAME say nothing",
    "fedadmm-deep": "its local problems are solved by epochs of SGD, to an accuracy that nothing controls",
    "newton": "that of section 9.5.3 needs a Lipschitz constant of ∇²f, which no problem tells",
    "fednl": "those of arXiv:2106.02969 hold near x*, in a ball of which they need Lipschitz constants of ∇²f_i",
    "fednl-pp": "those of arXiv:2106.02969 hold near x*, as those of fednl",
    "local-gd": "that of arXiv:1909.04715 bounds f at the mean of all iterates, which no model of a run is",
    "feddyn": "those of arXiv:2111.04263 ask for the exact minimiser of the local problem, which steps do not give",
    "ef21": "that of arXiv:2106.05203 bounds the gradient at a random one of all iterates, which no model of a run is",
    "diana": "that of arXiv:1905.11261 bounds an expectation over draws, of which a run is a single one",
    "marina": "that of arXiv:2102.07845 bounds an expectation at a random one of all iterates",
    "fedadmm-insa": "that of arXiv:2402.13989, for strongly convex f_i, could not be read",
    "sisa": "that of arXiv:2502.10784 could not be read; its abstract speaks of a bounded region, which no run shows",
    "dgd": "those of arXiv:1310.7063 lead to a distance of order γ, and need the least value of every f_i",
    "extra": "those of arXiv:1404.6264 bound norms of the models and duals of all nodes, which no model of a run is",
    "gradient-tracking": "those of arXiv:1605.07112 could not be read; that of 1607.03218 asks for γ ~ 1/(L√(mκ))",
    "fedgia-async": "those of FedGiA need a gradient of every client at the new model, which is not there in time",
    "fedbuff": "that of arXiv:2106.06639 could not be read; by 2210.01161 it needs bounds of gradients",
    "lt-admm": "those of arXiv:2501.13516 could not be read, and its abstract names no conditions",
    "fedgia-graph": "those of FedGiA take all gradients at one model, and nodes have one each",
    "fedepm-graph": "those of FedEPM are about one server's model, and nodes have one each",
    "fednova": "those of arXiv:2007.07481 need bounds on variance and dissimilarity that a run does not show",
}


def certificate(name: str, options: Any, known: Known) -> Certificate:
    """The certificate of the method called ``name`` with these options; of another one: that there is none."""
    if name not in THEOREMS:
        return nothing(name.rpartition(":")[2], WHY_NOT.get(name, ""))
    module, _, function = THEOREMS[name].partition(":")
    found: Certificate = getattr(importlib.import_module(module), function)(options, known)
    if known.selection == "arrivals" and name not in DELAYED:
        age = Condition.of("oldest upload in rounds = 0", known.oldest, "=", 0.0, "its rounds are synchronous")
        return found._replace(conditions=[*found.conditions, age])
    return found
