"""A sentence that says what each column of a table became."""

from collections.abc import Sequence

from mpifed.data.dataset import Feature
from mpifed.data.labels import SHOWN, folded, shortened
from mpifed.data.tables.roles import WORDS, Roles
from mpifed.data.tables.table import Table


def became(table: Table, roles: Roles, features: Sequence[Feature]) -> str:
    """Name the features, the levels of categories and their reference, columns that are no features, and the rest."""
    numbers = [repr(shortened(one.name)) for one in features if not one.category]
    categories = [f"{shortened(one.name)!r} ({levels(one)})" for one in features if one.category]
    special: dict[int, list[str]] = {}
    for role, k in roles.special.items():
        special.setdefault(k, []).append(WORDS[role])
    used = {*special, *roles.features}
    rest = [k for k in range(len(table.names)) if k not in used]
    found = [
        f"features {several(numbers)}" if numbers else "",
        f"categories {several(categories)}" if categories else "",
        *(f"{' and '.join(words)} {called(table, k)}" for k, words in special.items()),
        f"left out {several([called(table, k) for k in rest])}" if rest else "",
    ]
    return f"columns: {'; '.join(filter(None, found))}"


def called(table: Table, k: int) -> str:
    why = " (names of rows)" if k in table.row_names else ""
    return repr(shortened(table.name(k))) + (" (in both tables)" if table.key and k == table.places[table.key] else why)


def levels(feature: Feature) -> str:
    names = [shortened(level) or "''" for level in feature.levels]
    first = [] if feature.dropped is None else [f"reference {shortened(feature.dropped) or repr('')}"]
    return several([*first, *names])


def several(words: Sequence[str]) -> str:
    """Words with commas between them; of many the first ones, the last, and how many they are."""
    return ", ".join(folded(words)) + (f" ({len(words):,} in all)" if len(words) > SHOWN else "")
