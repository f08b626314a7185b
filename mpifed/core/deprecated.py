"""Old names that are still accepted: the one place where something is deprecated; docs/what-stays.md has the rules.

To rename a public name or a key of an experiment file, rename every use, then write the old name here and a line under
*Deprecated* in CHANGELOG.md. It is accepted, with a warning, until version ``gone``. A column that is renamed is read
from old result files for good, without a warning: nobody can change these files.
"""

import warnings
from typing import Any, NamedTuple

from mpifed.core.errors import UserError


class Old(NamedTuple):
    new: str  # what to write
    gone: str  # first version that refuses the old name


NAMES: dict[str, Old] = {}  # of mpifed: "Trouble": Old("RunError", "0.3")
KEYS: dict[tuple[str, str], Old] = {}  # class of the table or of a base, key: ("Evaluate", "steps"): Old(…)
COLUMNS: dict[str, str] = {}  # group and column of a result file -> column: "rounds/asked": "selected"; "/x": attribute

told: set[str] = set()  # what this process has warned of


class OldName(FutureWarning):
    """That a name is accepted which a later version refuses. Python shows a FutureWarning to every user."""


def accepted(name: str, old: Old, front: str = "") -> str:
    """The name for an old one, after a warning, once in a process; ``front`` stands before both, as a table does."""
    if front + name not in told:
        told.add(front + name)
        warnings.warn(
            f"{front}{name} is now called {front}{old.new}: write that, for mpifed {old.gone} refuses the old name",
            OldName,
            stacklevel=3,
        )
    return old.new


def public_name(name: str) -> str | None:
    """The public name for an old one; None where there is none."""
    return accepted(name, NAMES[name], "mpifed.") if name in NAMES else None


def with_new_keys(cls: type, table: dict[str, Any], path: str) -> dict[str, Any]:
    """A table of the class ``cls`` at ``path`` with new keys for old ones. UserError for a key that it has twice."""
    found: dict[str, Any] = {}
    front = f"{path}." if path else ""
    for key, value in table.items():
        old = next((KEYS[base.__name__, key] for base in cls.__mro__ if (base.__name__, key) in KEYS), None)
        new = key if old is None else accepted(key, old, front)
        if new != key and new in table:
            raise UserError(f"{front}{key} is the old name of {front}{new}, and both are there: write one of them")
        found[new] = value
    return found


def column_name(group: str, name: str) -> str:
    """The name of a column that a result file has under ``name``."""
    return COLUMNS.get(f"{group}/{name}", name)
