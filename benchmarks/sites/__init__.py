from collections.abc import Mapping
from typing import Any

import mpifed
from mpifed import Result
from mpifed.core.typing import Array


def done(study: Mapping[str, Any]) -> tuple[Result, Array]:
    """The result of a study and its final model."""
    result = mpifed.run(study, progress=False)
    # as there are no other ranks, and nothing interrupts
    assert result is not None
    assert result.x is not None
    return result, result.x
