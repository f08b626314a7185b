"""What an experiment file can name: components whose fields are the keys of their TOML table."""
from __future__ import annotations

import difflib
import importlib
import math
import typing
from typing import Any, ClassVar, NoReturn, Self

import msgspec


class UserError(Exception):
    """A mistake in the user's input, told in one sentence that names the key, the value and what would be right."""


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
        fields = {field.name: field for field in msgspec.structs.fields(cls)}
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


class Component(Table, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="name"):
    """Base of algorithms, problems, data sources, partitions, selections and step rules: tables with a ``name``.

    A base class that stands for a family (``Algorithm``, ``Step`` …) lists its members in ``choices``:
    name -> "module:Class".
    """

    choices: ClassVar[dict[str, str]] = {}
    default: ClassVar[str] = ""

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
        """The class that is called ``name`` in this family."""
        if not isinstance(name, str) or name not in cls.choices:
            unknown(path.rsplit(".", 1)[-1], name, cls.choices)
        module, _, attribute = cls.choices[name].partition(":")
        found: type[Self] = getattr(importlib.import_module(module), attribute)
        return found

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
    family = next((k for k in options if isinstance(k, type) and issubclass(k, Table)), None)
    if family is not None:
        return value if value is None else family.build(value, path)
    literal = next((k for k in (kind, *options) if typing.get_origin(k) is typing.Literal), None)
    if literal is not None and value not in typing.get_args(literal):
        right = " or ".join(toml_value(choice) for choice in typing.get_args(literal))
        raise UserError(f"{path} = {toml_value(value)} is wrong: it must be {right}")
    if isinstance(value, float) and not math.isfinite(value):
        raise UserError(f"{path} = {value} is wrong: it must be a finite number")
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise UserError(f"{path} = {toml_value(value)} is wrong: {lower(str(error))}") from None


def lower(text: str) -> str:
    return text[:1].lower() + text[1:].replace("`", "")


def toml_value(value: Any) -> str:
    """A value as TOML text."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return msgspec.json.encode(value).decode().replace("\x7f", "\\u007f")
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_value(v) for v in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{k} = {toml_value(v)}" for k, v in value.items()) + "}"
    return repr(value)


def to_toml(table: dict[str, Any], head: str = "") -> str:
    """A table as TOML text; keys without a value (None) are left out."""
    plain = {k: v for k, v in table.items() if v is not None and not isinstance(v, dict)}
    lines = [f"{key} = {toml_value(value)}" for key, value in plain.items()]
    for key, value in table.items():
        if isinstance(value, dict):
            lines += ["", f"[{join(head, key)}]", to_toml(value, join(head, key))]
    return "\n".join(lines)
