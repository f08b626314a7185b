"""The matrices H_i of FedGiA, and systems with them."""

from typing import Annotated, Literal

from msgspec import Meta

from mpifed.federation.local import Local
from mpifed.federation.traits import Requirement
from mpifed.problems.problem import RowMap

MetricChoice = Annotated[Literal["diagonal", "gram", "zero"], Meta(description="H_i: r_i I, Gram matrix or 0")]
NEEDS = Requirement("lipschitz"), Requirement("majorizer_inverse", when={"H": "gram"})


def invert_metric(f: Local, H: str, sigma: float) -> RowMap:
    """Return the map V -> (H_i/m + σI)⁻¹ v_i for rows V (c, n)."""
    if H == "gram":
        return f.majorizer_inverse(1 / f.m, sigma)
    h = (f.lipschitz() / f.m if H == "diagonal" else f.xp.zeros(len(f)))[:, None]
    factor = f.xp.astype(1 / (h + sigma), f.block.b.dtype)
    return lambda V: factor * V
