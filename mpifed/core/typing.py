"""Types used in every room: arrays, and numbers with the range that a TOML value must be in."""

from typing import Annotated, Any

from msgspec import Meta
from numpy.typing import NDArray

Array = NDArray[Any]
SampleMatrix = Any  # (rows, n): an Array or a scipy.sparse.csr_array
PositiveFloat = Annotated[float, Meta(gt=0)]
UnitFraction = Annotated[float, Meta(gt=0, le=1)]
PositiveNumber = Annotated[int, Meta(gt=0)] | Annotated[float, Meta(gt=0)]  # a whole one stays whole
NumberFromZero = Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0)]
PositiveInt = Annotated[int, Meta(ge=1)]
