"""All methods: generated from the files in mpifed/algorithms by `python docs/build.py`."""

from __future__ import annotations

from typing import NamedTuple


class Method(NamedTuple):
    """Where the class of a method is, its title, and its colour, marker and line in pictures."""

    place: str
    title: str
    colour: str
    marker: int
    line: int


METHODS = {
    "accfeddcd": Method("mpifed.algorithms.accfeddcd:AccFedDCD", "AccFedDCD", "wine", 0, 1),
    "ad-admm": Method("mpifed.algorithms.ad_admm:ADADMM", "AD-ADMM", "vermilion", 4, 3),
    "apfl": Method("mpifed.algorithms.apfl:APFL", "APFL", "brown", 4, 4),
    "dgd": Method("mpifed.algorithms.dgd:DGD", "DGD", "orange", 4, 2),
    "diana": Method("mpifed.algorithms.diana:Diana", "DIANA", "purple", 1, 2),
    "ditto": Method("mpifed.algorithms.ditto:Ditto", "Ditto", "brown", 6, 3),
    "ef21": Method("mpifed.algorithms.ef21:EF21", "EF21", "purple", 0, 1),
    "extra": Method("mpifed.algorithms.extra:Extra", "EXTRA", "orange", 0, 3),
    "fedadmm": Method("mpifed.algorithms.fedadmm:FedADMM", "FedADMM", "vermilion", 1, 0),
    "fedadmm-deep": Method("mpifed.algorithms.fedadmm_deep:FedADMMDeep", "FedADMM (deep)", "vermilion", 6, 1),
    "fedadmm-insa": Method("mpifed.algorithms.fedadmm_insa:FedADMMInSa", "FedADMM-InSa", "vermilion", 3, 4),
    "fedavg": Method("mpifed.algorithms.fedavg:FedAvg", "FedAvg", "black", 5, 0),
    "fedbuff": Method("mpifed.algorithms.fedbuff:FedBuff", "FedBuff", "sky", 4, 2),
    "feddcd": Method("mpifed.algorithms.feddcd:FedDCD", "FedDCD", "wine", 7, 0),
    "feddyn": Method("mpifed.algorithms.feddyn:FedDyn", "FedDyn", "green", 0, 1),
    "fedepm": Method("mpifed.algorithms.fedepm:FedEPM", "FedEPM", "purple", 6, 0),
    "fedepm-graph": Method("mpifed.algorithms.fedepm_graph:FedEPMGraph", "FedEPM, graph", "purple", 4, 4),
    "fedgia": Method("mpifed.algorithms.fedgia:FedGiA", "FedGiA", "blue", 0, 0),
    "fedgia-async": Method("mpifed.algorithms.fedgia_async:AsynchronousFedGiA", "FedGiA (async)", "blue", 2, 1),
    "fedgia-graph": Method("mpifed.algorithms.fedgia_graph:FedGiAGraph", "FedGiA, graph", "blue", 1, 2),
    "fednl": Method("mpifed.algorithms.fednl:FedNL", "FedNL", "green", 7, 3),
    "fednl-pp": Method("mpifed.algorithms.fednl_pp:FedNLPP", "FedNL-PP", "green", 3, 4),
    "fednova": Method("mpifed.algorithms.fednova:FedNova", "FedNova", "sky", 5, 3),
    "fedopt": Method("mpifed.algorithms.fedopt:FedOpt", "FedOpt", "black", 3, 2),
    "fedpd": Method("mpifed.algorithms.fedpd:FedPD", "FedPD", "green", 2, 0),
    "fedprox": Method("mpifed.algorithms.fedprox:FedProx", "FedProx", "sky", 4, 0),
    "flame": Method("mpifed.algorithms.flame:Flame", "FLAME", "brown", 1, 0),
    "flame-dp": Method("mpifed.algorithms.flame_dp:FlameDP", "FLAME-DP", "brown", 5, 2),
    "gd": Method("mpifed.algorithms.gd:GD", "GD", "black", 0, 3),
    "gradient-tracking": Method(
        "mpifed.algorithms.gradient_tracking:GradientTracking", "Gradient tracking", "orange", 2, 4
    ),
    "local-gd": Method("mpifed.algorithms.local_gd:LocalGD", "Local GD", "black", 2, 4),
    "lt-admm": Method("mpifed.algorithms.lt_admm:LTADMM", "LT-ADMM", "wine", 3, 2),
    "marina": Method("mpifed.algorithms.marina:Marina", "MARINA", "purple", 2, 3),
    "newton": Method("mpifed.algorithms.newton:Newton", "Newton", "green", 5, 2),
    "pfedme": Method("mpifed.algorithms.pfedme:PFedMe", "pFedMe", "brown", 2, 1),
    "proxskip": Method("mpifed.algorithms.proxskip:ProxSkip", "ProxSkip", "orange", 1, 1),
    "scaffold": Method("mpifed.algorithms.scaffold:Scaffold", "SCAFFOLD", "orange", 3, 0),
    "sfedavg": Method("mpifed.algorithms.sfedavg:SFedAvg", "SFedAvg", "black", 7, 1),
    "sfedprox": Method("mpifed.algorithms.sfedprox:SFedProx", "SFedProx", "sky", 3, 1),
    "sisa": Method("mpifed.algorithms.sisa:SISA", "SISA", "vermilion", 2, 2),
}
CHOICES = {name: method.place for name, method in METHODS.items()}
