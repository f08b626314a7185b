"""Tables and components of an experiment file: classes whose fields are the keys of a TOML table."""

import difflib
import importlib
import math
import re
import typing
from collections.abc import Iterator
from functools import cache
from typing import Any, ClassVar, NoReturn, Self

import msgspec

from mpifed.core import plugins
from mpifed.core.arrays import is_number
from mpifed.core.deprecated import with_new_keys
from mpifed.core.errors import UserError, unknown
from mpifed.core.promises import NO_REASONS, NOTHING_KEPT, Keeps, Reasons
from mpifed.core.toml import join, toml_value

LONGEST = 200  # characters of a value in a message
CHOSEN = ("algorithms", "problems", "data")  # what a study is about: nobody takes another one for the sake of an option
IN_TIME = ("seconds", "latency", "deadline", "patience")  # ends of keys that are times
UNITS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}  # in seconds
LIMITS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
TYPES = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}


@typing.dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of an experiment file. Its fields are the keys, with types, defaults and descriptions."""

    refused: ClassVar[dict[str, str]] = {}  # keys of similar tables that this one cannot have, and why not

    @classmethod
    def build(cls, table: Any, path: str) -> Self:
        """The table at ``path`` with its values checked against the fields; UserError names the key that is wrong."""
        return cls.fill(given(table, path, f"{path} is a table, so write {path}.KEY = VALUE"), path)

    @classmethod
    def fill(cls, table: dict[str, Any], path: str) -> Self:
        """The same for a dict without the key ``name``."""
        fields = fields_of(cls)
        if not table.keys() <= fields.keys():
            table = with_new_keys(cls, table, path)
        for key in table:
            if key not in fields and key in cls.refused:
                raise UserError(f"{join(path, key)} cannot be set: {cls.refused[key]}")
            if key not in fields:
                cls.refuse_key(key, table[key], path)
        # After all keys: whoever misspells one should hear of that, and not of the value of another.
        values = {}
        for key, value in table.items():
            values[fields[key].name] = convert(value, fields[key].type, join(path, key))
        for key, field in fields.items():
            if field.required and key not in table:
                raise UserError(f"{join(path, key)} is missing: it has no default")
        try:
            return cls(**values)
        except ValueError as error:
            raise UserError(f"{path}: {error}") from None

    @classmethod
    def refuse_key(cls, key: str, value: Any, path: str) -> NoReturn:
        """UserError for a key that this table does not have; it says what would be right."""
        unknown("key", key, fields_of(cls), path)


@cache
def fields_of(cls: type[Table]) -> dict[str, Any]:
    """Key -> field of a table, whose attribute is field.name; cached, because reading annotations is slow."""
    return {field.encode_name: field for field in msgspec.structs.fields(cls)}


class Component(Table, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="name"):
    """A table with a ``name``: the base of algorithms, problems, data sources, partitions, selections and step rules.

    The base class of a family (``Algorithm``, ``Step`` …) lists the members in ``choices``: name -> "module:Class".
    Members from outside mpifed are found by ``plugins``; the abstract methods of the family are what they must define.
    """

    choices: ClassVar[dict[str, str]] = {}
    default: ClassVar[str] = ""
    kind: ClassVar[str] = ""  # plural name of the family; mpifed.KIND is its group of entry points
    checks: ClassVar[str] = ""  # the module whose GUARDS say what the methods of a user's own class must return

    @property
    def keeps(self) -> Keeps:
        """Promises that hold with this component and its options, as its own class says."""
        return NOTHING_KEPT

    @property
    def unkept(self) -> Reasons:
        """Why other promises do not hold with it, and what would be right."""
        return NO_REASONS

    @classmethod
    def build(cls, table: Any, path: str) -> Self:
        """The component that a table names; a plain string is a table with that name."""
        table = given(table, path, f"{path} is a table, such as {path}.name = {cls.default!r}", short="name")
        name = table.pop("name", cls.default)
        return cls.member(name, path).fill(table, path)

    @classmethod
    def member(cls, name: Any, path: str) -> type[Self]:
        """The class called ``name`` in this family, in mpifed or in a plugin; UserError where there is none."""
        if not isinstance(name, str):
            unknown(path.rsplit(".", 1)[-1], name, cls.names())
        # mpifed's own first, so that no package that is installed can change what a study with this name means.
        if name in cls.choices:
            module, _, attribute = cls.choices[name].partition(":")
            return getattr(importlib.import_module(module), attribute)
        try:
            found = plugins.find(cls, name)
        except ValueError as error:
            raise UserError(f"{path} = {brief(name)} is wrong: {error}") from None
        return found or unknown(path.rsplit(".", 1)[-1], name, cls.names())

    @classmethod
    def refuse_key(cls, key: str, value: Any, path: str) -> NoReturn:
        """The same; where other members of the family have the key, with their names."""
        family: Any = next((base for base in cls.__mro__ if "choices" in vars(base)), cls)
        if family.kind in CHOSEN:
            super().refuse_key(key, value, path)
        able = [name for name in family.choices if name != cls.label() and key in fields_of(family.member(name, path))]
        if not able or difflib.get_close_matches(key, list(fields_of(cls)), 1):
            super().refuse_key(key, value, path)
        own = f"the choices are {', '.join(fields_of(cls))}" if fields_of(cls) else f"{cls.label()} has none"
        raise UserError(
            f"unknown key {join(path, key)!r}; {own}; with {path}.name = {toml_value(able[0])} there is {key}"
        )

    @classmethod
    def names(cls) -> list[str]:
        """All names of this family: those of mpifed, then those of installed packages."""
        return list(dict.fromkeys([*cls.choices, *plugins.installed(cls.kind)]))

    @classmethod
    def label(cls) -> str:
        """The name of this class in an experiment file."""
        return str(cls.__struct_config__.tag)


def given(table: Any, path: str, right: str, short: str = "") -> dict[str, Any]:
    """A copy of a table that a user gave; a text alone is its key ``short``. UserError, which says what is right."""
    whole = {short: table} if short and isinstance(table, str) else table
    try:
        return msgspec.convert(whole, dict[str, Any])
    except msgspec.ValidationError:
        raise UserError(f"{path} = {brief(table)} is wrong: {right}") from None


def convert(value: Any, kind: Any, path: str) -> Any:
    """``value`` as the type ``kind``; UserError with ``path`` where that is impossible."""
    family, choices, types = parts_of(kind)
    if family is not None:
        return value if value is None else family.build(value, path)
    if choices and value is not None and value not in choices:
        right = " or ".join(map(toml_value, choices))
        raise UserError(f"{path} = {brief(value)} is wrong: it must be {right}")
    if is_number(value, float):
        if not math.isfinite(value):
            raise UserError(f"{path} = {value} is wrong: it must be a finite number")
        # rounds = 1e3 means a whole number, which TOML writes in no other way with an exponent.
        if value.is_integer() and int in types and float not in types:
            value = int(value)
    try:
        converted = msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        # of a text beside numbers msgspec says which is wrong, and not which are right
        right = f"it must be a number or {texts(kind)}" if "enum" in str(error) else limited(plain(str(error)), kind)
        raise UserError(f"{path} = {brief(value)} is wrong: {right}{in_seconds(value, path)}") from None
    # TOML and Python have whole numbers of any size, while numpy and HDF5, which store them, have 64 bits.
    if is_number(value, int) and not -(2**63) <= value < 2**63:
        raise UserError(f"{path} = {value} is wrong: an integer must fit into 64 bits")
    return converted


@cache
def parts_of(kind: Any) -> tuple[type[Table] | None, tuple[Any, ...], frozenset[type]]:
    """The table in the type of a field, the choices where these are all that it takes, and every class in it."""
    parts = list(within(kind))
    types = [part for part in parts if isinstance(part, type)]
    literal = next((part for part in parts if typing.get_origin(part) is typing.Literal), None)
    # With another type beside the choices, as in Literal["auto"] | float, msgspec's sentence says both.
    choices = () if {int, float, str, bool, list} & {*types} else typing.get_args(literal)
    return next((part for part in types if issubclass(part, Table)), None), choices, frozenset(types)


def texts(kind: Any) -> str:
    """The texts that a type takes beside numbers."""
    literals = (part for part in within(kind) if typing.get_origin(part) is typing.Literal)
    return " or ".join(toml_value(text) for part in literals for text in typing.get_args(part))


def limited(text: str, kind: Any) -> str:
    """The end of a sentence about one limit of a number, with both limits where a type has two."""
    found = re.fullmatch(r"(it must be a (?:whole )?number) [<>]=? \S+", text)
    metas = [meta for part in within(kind) for meta in getattr(part, "__metadata__", ())]
    pairs = [(sign, getattr(meta, name)) for meta in metas for name, sign in LIMITS.items()]
    limits = [f"{sign} {limit}" for sign, limit in pairs if limit is not None]
    return f"{found[1]} {' and '.join(limits)}" if found and len(limits) == 2 else text


def in_seconds(value: Any, path: str) -> str:
    """For a text such as 50ms where a time is wanted, the number of seconds to write; otherwise nothing."""
    if not path.endswith(IN_TIME):
        return ""
    found = re.fullmatch(r"([0-9.eE+-]*[0-9.]) ?(us|µs|ms|s|min|h)", str(value))
    return f"; in seconds that is {float(found[1]) * UNITS[found[2]]:g}" if found else ""


def within(kind: Any) -> Iterator[Any]:
    """A type and, recursively, its arguments, as in X | None or Annotated[X, …]."""
    yield kind
    for part in getattr(kind, "__args__", ()):
        yield from within(part)


def brief(value: Any) -> str:
    """A value as TOML text for a message; of a long one the beginning and the end."""
    text = toml_value(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}…{text[-LONGEST // 4 :]}"


def plain(text: str) -> str:
    """An error message of msgspec, such as "Expected `int`, got `str`", as the end of a sentence of ours."""
    text = re.sub(r" \| null|`", "", text)
    for type_, words in TYPES.items():
        text = re.sub(rf"\b{type_}\b", words, text)
    text = text.replace(" | ", " or ")
    return (text[:1].lower() + text[1:]).replace("expected ", "it must be ").replace(", got ", ", not ")
