"""Conversion of tables to TOML text and back."""

import itertools
import json
import re
import tomllib
from typing import Any

from mpifed.core.errors import UserError

DEEPEST = 32  # levels of nested tables and lists
DOTS = 10_000  # full stops in a file: the time to parse a dotted key grows with the square of its parts


def join(path: str, key: str) -> str:
    """A dotted key; ``path`` may be empty."""
    return f"{path}.{key}" if path else key


def toml_value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_value(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml_key(k)} = {toml_value(v)}" for k, v in value.items()) + "}"
    return value.isoformat() if hasattr(value, "isoformat") else repr(value)


def is_number(value: Any) -> bool:
    """Whether a value is a number, which true and false are to Python but not to TOML."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def toml_key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml_value(key)


def to_toml(table: dict[str, Any], head: str = "") -> str:
    """A table as TOML text, without keys whose value is None; ``head`` is the dotted key of the table."""
    plain = {k: v for k, v in table.items() if v is not None and not isinstance(v, dict)}
    lines = [f"{toml_key(key)} = {toml_value(value)}" for key, value in plain.items()]
    for key, value in table.items():
        if isinstance(value, dict):
            path = join(head, toml_key(key))
            lines += ["", f"[{path}]", to_toml(value, path)]
    return "\n".join(lines)


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
    parts = [value]
    for _ in range(DEEPEST):
        parts = [part.values() if isinstance(part, dict) else part for part in parts if isinstance(part, dict | list)]
        parts = list(itertools.chain.from_iterable(parts))
    if any(isinstance(part, dict | list) for part in parts):
        deep = f"nested more than {DEEPEST} levels deep"
        raise UserError(f"{what} has tables or lists {deep}: an experiment file needs three")
