"""A result as a Python program meets it: one line, a table and curves in a notebook, a summary, pictures."""

import dataclasses
import math
import os
from collections.abc import Sequence
from typing import Any, Self

import numpy as np

from mpifed.api import html
from mpifed.api.picture import draw
from mpifed.report.summary import show
from mpifed.results import result as results


class Result(results.Result):
    """Everything that a run recorded, in memory.

    ``rounds`` name -> (rounds,), with ``round`` itself; ``about`` name -> unit and description of these columns;
    ``ranks`` and ``clients`` name -> (ranks,) and (m,); ``selection`` (rounds, slots) as stored, see ``selected``;
    ``x`` (n,) and ``personal`` (m, n) the final models, None where there are none; ``attrs`` the root attributes;
    ``path`` the file, None for a result in memory.
    """

    @classmethod
    def of(cls, other: results.Result) -> Self:
        """A result of the room ``results`` as one of this class."""
        return cls(**{field.name: getattr(other, field.name) for field in dataclasses.fields(other)})

    def __repr__(self) -> str:
        return f"<Result of {headline(self)}>"

    def _repr_html_(self) -> str:
        return html.page(self, headline(self))

    def summary(self) -> str:
        """Configuration, outcome, communication, times and ranks, as the command ``show`` prints them."""
        return show(self)

    def plot(self, y: str | Sequence[str] | None = None, x: str = "round", **options: Any) -> Any:
        """A figure of matplotlib with the columns ``y`` against ``x``: see ``mpifed.plot``."""
        return draw([self], y, x, **options)


def headline(result: results.Result) -> str:
    """fedgia on softmax / digits, 50 clients: finished after 30 rounds, f 0.42."""
    config = result.config
    names = (config.get(key, {}).get("name", "?") for key in ("algorithm", "problem", "data"))
    name, problem, data = (name.rpartition(":")[2] for name in names)  # my_methods.py:MyMethod
    f = [value for value in result.rounds.get("objective", np.zeros(0)).tolist() if math.isfinite(value)]
    value = f", f {f[-1]:.4g}" if f else ""
    return f"{name} on {problem} / {data}, {result.m} clients: {result.status} after {result.cr} rounds{value}"


def load(path: str | os.PathLike[str]) -> Result:
    """Read a result file, finished or still being written. UserError where the file is not a result."""
    return Result.of(results.load(path))
