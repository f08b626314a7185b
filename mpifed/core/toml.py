"""Conversion of tables to TOML text and back."""

import itertools
import json
import re
import tomllib
from collections.abc import Sequence
from typing import Any

from mpifed.core.errors import UserError

DEEPEST = 32  # levels of nested tables and lists
DOTS = 10_000  # full stops in a file: the time to parse a dotted key grows with the square of its parts


def join(path: str, key: str) -> str:
    """A dotted key; ``path`` may be empty."""
    return f"{path}.{key}" if path else key


def listed(value: Any, times: int = 1) -> list[Any]:
    """The list that an option holds, or its one value ``times``; [] where it has none."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value] * times


def toml_value(value: Any) -> str:
    # A text of JSON is one of TOML too, but for the character DEL, which TOML wants escaped.
    if isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_value(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml_key(k)} = {toml_value(v)}" for k, v in value.items()) + "}"
    return value.isoformat() if hasattr(value, "isoformat") else repr(value)


def toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml_value(key)


def to_toml(table: dict[str, Any], head: str = "") -> str:
    """A table as TOML text, without keys whose value is None; ``head`` is the dotted key of the table."""
    lines: list[str] = []
    tables: list[str] = []
    for key, value in table.items():
        if isinstance(value, dict):
            path = join(head, toml_key(key))
            tables += ["", f"[{path}]", to_toml(value, path)]
        elif value is not None:
            lines.append(f"{toml_key(key)} = {toml_value(value)}")
    # Tables last: a key behind the head of a table would belong to it.
    return "\n".join(lines + tables)


def flat(table: dict[str, Any], front: str = "") -> dict[str, Any]:
    """Values of nested tables by their dotted keys: {"a": {"b": 1}} becomes {"a.b": 1}."""
    found: dict[str, Any] = {}
    for key, value in table.items():
        found |= flat(value, f"{front}{key}.") if isinstance(value, dict) else {front + key: value}
    return found


def from_toml(text: str, what: str) -> dict[str, Any]:
    if text.count(".") > DOTS:
        raise UserError(f"{what} is not an experiment file: it has more than {DOTS} full stops")
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{what} is not valid TOML: {error}") from None
    shallow(table, what)
    return table


def shallow(value: Any, what: str) -> None:
    # Level by level and not by recursion, which the deepest file that tomllib reads would take to its limit.
    levels = [value]
    for _ in range(DEEPEST):
        levels = list(itertools.chain.from_iterable(nested(levels)))
    if nested(levels):
        deep = f"nested more than {DEEPEST} levels deep"
        raise UserError(f"{what} has tables or lists {deep}: an experiment file needs three")


def nested(values: Sequence[Any]) -> list[Any]:
    """What is in the lists and in the tables among ``values``."""
    found = [value for value in values if isinstance(value, dict | list)]
    return [value.values() if hasattr(value, "values") else value for value in found]
