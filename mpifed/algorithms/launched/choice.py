"""Which methods have their local steps in one launch on a GPU."""

from typing import Any

import msgspec

from mpifed.algorithms.accfeddcd import AccFedDCD
from mpifed.algorithms.ad_admm import ADADMM
from mpifed.algorithms.feddcd import FedDCD
from mpifed.algorithms.launched import averaging, corrected, personal
from mpifed.algorithms.launched.descent import in_one_launch
from mpifed.algorithms.launched.solvers import SOLVERS

SOLVING = (AccFedDCD, ADADMM, FedDCD)  # methods that leave their local steps to a solver
KINDS: dict[type, Any] = {
    kind.__bases__[0]: kind
    for kind in (
        averaging.LaunchedDitto,
        averaging.LaunchedFedAvg,
        averaging.LaunchedFedNova,
        averaging.LaunchedFedOpt,
        averaging.LaunchedFedProx,
        corrected.LaunchedDGD,
        corrected.LaunchedFedBuff,
        corrected.LaunchedFedDyn,
        corrected.LaunchedLTADMM,
        corrected.LaunchedLocalGD,
        corrected.LaunchedProxSkip,
        corrected.LaunchedScaffold,
        personal.LaunchedFedADMMDeep,
        personal.LaunchedFlame,
        personal.LaunchedPFedMe,
    )
}


def launched(method: Any) -> Any | None:
    """The method with its local steps in one launch; None where its steps are others, by its options for example."""
    if type(method) in SOLVING:
        solver = in_one_launch(method.solver, SOLVERS)
        return None if solver is None else msgspec.structs.replace(method, solver=solver)
    return in_one_launch(method, KINDS)
