"""What an experiment file can name: components whose fields are the keys of their TOML table."""

from __future__ import annotations

import importlib
import math
import typing
from collections.abc import Iterator
from functools import cache
from typing import Any, ClassVar, Self

import msgspec

from mpifed.core import plugins as extension
from mpifed.core.errors import UserError, unknown
from mpifed.core.toml import join, toml_value


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
            raise UserError(
                f"{path} = {toml_value(table)} is wrong: it is a table, such as {path}.name = {cls.default!r}"
            )
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
