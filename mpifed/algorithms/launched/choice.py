"""Which methods have their local steps in one launch on a GPU."""

from typing import Any

import msgspec

from mpifed.algorithms.launched import averaging, corrected, personal

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
    """The method with its local steps in one launch; None where its options, or a class of a user's own, have others.

    A class that derives from a method may change any step of it.
    """
    kind = KINDS.get(type(method))
    if kind is None:
        return None
    made = kind(**msgspec.structs.asdict(method))
    return made if made.suits() else None
