"""What an experiment file can name: components whose fields are the keys of their TOML table."""
from __future__ import annotations

import difflib
import importlib
import json
import math
import re
import socket
import tomllib
import traceback
import typing
from collections.abc import Iterator
from functools import cache
from typing import Any, ClassVar, NoReturn, Self

import msgspec

from mpifed import extension

LONGEST = 600   # characters of a sentence
DEEPEST = 32    # tables in tables of an experiment file
DOTS = 10_000   # full stops in an experiment file: reading a dotted key takes time with the square of its parts


class UserError(Exception):
    """A mistake in the user's input, told in one sentence that names the key, the value and what would be right."""


class Trouble(Exception):
    """Why a run cannot go on, in one sentence; what was recorded so far stays."""


def reason(error: BaseException) -> str:
    """Why the system refused, in small letters."""
    return (getattr(error, "strerror", None) or str(error)).lower()


def failure(rank: int, error: BaseException) -> str:
    """What to say of an error on a rank: a mistake of the user in one sentence, others with where they happened."""
    if isinstance(error, UserError):
        return str(error)
    what = f"{type(error).__name__}: {error}".removesuffix(": ")
    where = "".join(traceback.format_tb(error.__traceback__)).rstrip()
    return f"rank {rank} on {socket.gethostname()} failed: {what}\n{where}"


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of an experiment file: its fields are the keys, their defaults and their help text."""

    @classmethod
    def build(cls, table: Any, path: str) -> Self:
        """The values of ``table``, each checked against its field; UserError names the key under ``path`` that is wrong."""
        if not isinstance(table, dict):
            raise UserError(f"{path} = {toml_value(table)} is wrong: it is a table, so write {path}.KEY = VALUE")
        return cls.fill(table, path)

    @classmethod
    def fill(cls, table: dict[str, Any], path: str) -> Self:
        fields = fields_of(cls)
        for key in table:
            if key not in fields:
                unknown("key", key, fields, path)
        values = {key: convert(value, fields[key].type, join(path, key)) for key, value in table.items()}
        missing = [key for key, field in fields.items() if field.required and key not in values]
        if missing:
            raise UserError(f"{join(path, missing[0])} is missing: it has no default")
        try:
            return cls(**values)
        except ValueError as error:
            raise UserError(f"{path}: {error}") from None


@cache
def fields_of(cls: type[Table]) -> dict[str, Any]:
    """name -> field, read from the annotations once."""
    return {field.name: field for field in msgspec.structs.fields(cls)}


class Component(Table, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="name"):
    """Base of algorithms, problems, data sources, partitions, selections and step rules: tables with a ``name``.

    A base class that stands for a family (``Algorithm``, ``Step`` …) lists its members in ``choices``:
    name -> "module:Class". Others come from outside mpifed, see ``extension``; what they must define is abstract.
    """

    choices: ClassVar[dict[str, str]] = {}
    default: ClassVar[str] = ""
    kind: ClassVar[str] = ""  # what the members are called together: mpifed.KIND is their group of entry points

    @classmethod
    def build(cls, table: Any, path: str) -> Self:
        """The component that ``table`` names."""
        if isinstance(table, str):
            table = {"name": table}
        if not isinstance(table, dict):
            raise UserError(f"{path} = {toml_value(table)} is wrong: it is a table, such as {path}.name = {cls.default!r}")
        table = dict(table)
        name = table.pop("name", cls.default)
        return cls.member(name, path).fill(table, path)

    @classmethod
    def member(cls, name: Any, path: str) -> type[Self]:
        """The class that is called ``name`` in this family, one of mpifed or one outside."""
        if isinstance(name, str) and name in cls.choices:
            module, _, attribute = cls.choices[name].partition(":")
            found: type[Self] = getattr(importlib.import_module(module), attribute)
            return found
        try:
            found = extension.find(cls, name)
        except ValueError as error:
            raise UserError(f"{path} = {toml_value(name)} is wrong: {error}") from None
        return found or unknown(path.rsplit(".", 1)[-1], name, cls.names())

    @classmethod
    def names(cls) -> list[str]:
        """Every name in this family: those of mpifed, then those that installed packages add."""
        return list(dict.fromkeys([*cls.choices, *extension.installed(cls.kind)]))

    @classmethod
    def label(cls) -> str:
        """The name under which an experiment file calls this class."""
        return str(cls.__struct_config__.tag)


def join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def unknown(what: str, name: Any, known: Any, path: str = "") -> NoReturn:
    """Refuse ``name``, with the nearest known name or, where none is near, the list of them."""
    near = difflib.get_close_matches(str(name), list(known), 1)
    hint = f"did you mean {near[0]!r}?" if near else "there is " + ", ".join(known) if known else "none is known here"
    raise UserError(f"unknown {what} {join(path, str(name))!r}; {hint}")


def convert(value: Any, kind: Any, path: str) -> Any:
    """``value`` as ``kind``, or a UserError that names ``path``."""
    options = getattr(kind, "__args__", (kind,))
    family = next((k for k in within(kind) if isinstance(k, type) and issubclass(k, Table)), None)
    if family is not None:
        return value if value is None else family.build(value, path)
    literal = next((k for k in (kind, *options) if typing.get_origin(k) is typing.Literal), None)
    if literal is not None and value not in typing.get_args(literal):
        right = " or ".join(toml_value(choice) for choice in typing.get_args(literal))
        raise UserError(f"{path} = {toml_value(value)} is wrong: it must be {right}")
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"{path} = {value} is wrong: it must be a finite number")
    try:
        converted = msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise UserError(f"{path} = {toml_value(value)} is wrong: {lower(str(error))}") from None
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise UserError(f"{path} = {value} is wrong: a whole number has at most 64 bits")
    return converted


def within(kind: Any) -> Iterator[Any]:
    """A type and all that it is made of: X | None, Annotated[X, …]."""
    yield kind
    for part in getattr(kind, "__args__", ()):
        yield from within(part)


def lower(text: str) -> str:
    return text[:1].lower() + text[1:].replace("`", "")


def toml_value(value: Any) -> str:
    """A value as TOML text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_value(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml_key(k)} = {toml_value(v)}" for k, v in value.items()) + "}"
    return value.isoformat() if hasattr(value, "isoformat") else repr(value)


def toml_key(key: str) -> str:
    """A key as TOML text."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml_value(key)


def to_toml(table: dict[str, Any], head: str = "") -> str:
    """A table as TOML text; keys without a value (None) are left out."""
    plain = {k: v for k, v in table.items() if v is not None and not isinstance(v, dict)}
    lines = [f"{toml_key(key)} = {toml_value(value)}" for key, value in plain.items()]
    for key, value in table.items():
        if isinstance(value, dict):
            path = join(head, toml_key(key))
            lines += ["", f"[{path}]", to_toml(value, path)]
    return "\n".join(lines)


def from_toml(text: str, what: str) -> dict[str, Any]:
    """The table in TOML text; a UserError calls it ``what``."""
    if text.count(".") > DOTS:
        raise UserError(f"{what} is no experiment file: it has more than {DOTS} full stops")
    try:
        table = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{what} is no TOML: {error}") from None
    shallow(table, what)
    return table


def shallow(value: Any, what: str) -> None:
    """UserError where tables and lists lie too deep in one another."""
    parts = [value]
    for _ in range(DEEPEST):
        parts = [inner for part in parts if isinstance(part, dict | list)
                 for inner in (part.values() if isinstance(part, dict) else part)]
    if any(isinstance(part, dict | list) for part in parts):
        raise UserError(f"{what} has tables or lists nested more than {DEEPEST} deep: an experiment file needs three")


def sentence(mistake: object) -> str:
    """What to tell of a mistake: one line, not too long, nothing in it that a terminal would obey."""
    text = printable(str(mistake))
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]} … {text[-LONGEST // 2 :]}"


def printable(text: str, keep: str = "") -> str:
    """Text with control characters and stray bytes shown as escapes, those in ``keep`` left alone."""
    return "".join(c if c.isprintable() or c in keep else ascii(c)[1:-1] for c in text)
