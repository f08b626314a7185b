"""Types used in every room: arrays, and numbers with the ranges that a TOML value must be in."""

from typing import Annotated, Any

from msgspec import Meta
from numpy.typing import NDArray

Array = NDArray[Any]
Matrix = Any  # (rows, n): an Array or a scipy.sparse.csr_array
Positive = Annotated[float, Meta(gt=0)]
Share = Annotated[float, Meta(gt=0, le=1)]
Count = Annotated[int, Meta(ge=1)]
