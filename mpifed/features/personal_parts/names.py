"""Names of parameters, and which of them stay with the clients."""

from collections.abc import Sequence
from fnmatch import fnmatchcase

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.features.penalty.coefficients import coefficient_names
from mpifed.problems.problem import Problem

LISTED = 20  # names in an error message


def parameter_sizes(problem: Problem, data: Dataset) -> list[tuple[str, int]]:
    """Return the names and sizes of a problem's parameters in their order in x; each coefficient is one of its own."""
    with problem.raise_user_errors():
        named = problem.parameter_sizes(data)
        n = problem.dim(data)
    return [*named.items()] or [(name, 1) for name in coefficient_names(data, n)]


def describe_sizes(sizes: Sequence[tuple[str, int]]) -> str:
    """Return names with the numbers of their entries in a line, all of a network and the first of a long table."""
    words = [name if size == 1 else f"{name} ({size:,})" for name, size in sizes[:LISTED]]
    return ", ".join([*words, *(["…"] if len(sizes) > LISTED else [])])


def select_home(patterns: Sequence[str], problem: Problem, data: Dataset) -> Array:
    """Return which parameters stay with the clients: (n,) bool. Raise UserError where a pattern names none, or all."""
    sizes = parameter_sizes(problem, data)
    names = [name for name, _ in sizes]
    for pattern in patterns:
        if not any(matches(name, pattern) for name in names):
            raise UserError(
                f"personal names {toml_value(pattern)}, which is no parameter of {problem.label()}: there are "
                f"{describe_sizes(sizes)}"
            )
    home = [any(matches(name, pattern) for pattern in patterns) for name in names]
    if all(home):
        raise UserError(
            f"personal = {toml_value(list(patterns))} names all parameters, so that nothing would travel: leave out "
            f"some of {describe_sizes(sizes)}"
        )
    return np.repeat(home, [size for _, size in sizes])


def matches(name: str, pattern: str) -> bool:
    """Return whether a pattern names a parameter: names of columns may have characters with a meaning in patterns."""
    return name == pattern or fnmatchcase(name, pattern)
