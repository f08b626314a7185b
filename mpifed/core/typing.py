"""Types that every room uses."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta
from numpy.typing import NDArray

Array = NDArray[Any]
Matrix = Any  # NDArray or scipy.sparse.csr_array, (rows, n)
Positive = Annotated[float, Meta(gt=0)]
Share = Annotated[float, Meta(gt=0, le=1)]
Count = Annotated[int, Meta(ge=1)]
