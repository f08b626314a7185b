"""Conversion of tables to TOML text and back."""

import itertools
import json
import re
import tomllib
from collections.abc import Sequence
from typing import Any

from mpifed.core.errors import UserError

MAX_DEPTH = 32  # levels of nested tables and lists
MAX_DOTS = 10_000  # full stops in a file: the time to parse a dotted key grows with the square of its parts


def join_key(path: str, key: str) -> str:
    """Join a dotted key; ``path`` may be empty."""
    return f"{path}.{key}" if path else key


def as_list(value: Any, times: int = 1) -> list[Any]:
    """Return an option's value as a list: a list itself, one value ``times`` times, [] for None."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value] * times


def toml_value(value: Any) -> str:
    """Write a value as TOML text."""
    # A text of JSON is one of TOML too, except that TOML wants the character DEL escaped.
    if isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_value(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml_key(k)} = {toml_value(v)}" for k, v in value.items()) + "}"
    return value.isoformat() if hasattr(value, "isoformat") else repr(value)


def wrong_value(key: str, value: Any, why: str) -> UserError:
    """Return the error for a key whose value is wrong; ``why`` says what would be right."""
    return UserError(f"{key} = {toml_value(value)} is wrong: {why}")


def toml_key(key: str) -> str:
    """Write a key as TOML text, with quotes if it needs them."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml_value(key)


def to_toml(table: dict[str, Any], head: str = "") -> str:
    """Write a table as TOML text, without keys whose value is None; ``head`` is the dotted key of the table."""
    lines: list[str] = []
    tables: list[str] = []
    for key, value in table.items():
        if isinstance(value, dict):
            path = join_key(head, toml_key(key))
            tables += ["", f"[{path}]", to_toml(value, path)]
        elif value is not None:
            lines.append(f"{toml_key(key)} = {toml_value(value)}")
    # Tables last, because a key after the head of a table belongs to that table.
    return "\n".join(lines + tables)


def flatten(table: dict[str, Any], front: str = "") -> dict[str, Any]:
    """Flatten nested tables to dotted keys: {"a": {"b": 1}} becomes {"a.b": 1}."""
    values: dict[str, Any] = {}
    for key, value in table.items():
        values |= flatten(value, f"{front}{key}.") if isinstance(value, dict) else {front + key: value}
    return values


def from_toml(text: str, what: str) -> dict[str, Any]:
    """Parse TOML text; UserError, which begins with ``what``, if it is not an experiment file."""
    if text.count(".") > MAX_DOTS:
        raise UserError(f"{what} is not an experiment file: it has more than {MAX_DOTS} full stops")
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{what} is not valid TOML: {error}") from None
    check_depth(table, what)
    return table


def check_depth(value: Any, what: str) -> None:
    """Raise UserError if tables and lists are nested more than MAX_DEPTH levels deep."""
    # Level by level, because the deepest file that tomllib reads would take a recursion to its limit.
    levels = [value]
    for _ in range(MAX_DEPTH):
        levels = list(itertools.chain.from_iterable(contents_of(levels)))
    if contents_of(levels):
        deep = f"nested more than {MAX_DEPTH} levels deep"
        raise UserError(f"{what} has tables or lists {deep}: an experiment file needs three")


def contents_of(values: Sequence[Any]) -> list[Any]:
    """Return the contents of the lists and tables among ``values``."""
    containers = [value for value in values if isinstance(value, dict | list)]
    return [value.values() if hasattr(value, "values") else value for value in containers]
