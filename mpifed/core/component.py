"""Tables and components of an experiment file: classes whose fields are the keys of a TOML table."""

import difflib
import functools
import importlib
import math
import re
import typing
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, ClassVar, NoReturn, Self

import msgspec

from mpifed.core import plugins
from mpifed.core.arrays import is_number
from mpifed.core.errors import InvalidValue, UserError, raise_unknown
from mpifed.core.promises import NO_REASONS, NOTHING_SUPPORTED, Reasons, Supports
from mpifed.core.toml import join_key, toml_value

LONGEST = 200  # characters of a value in a message
SUBJECTS = ("algorithms", "problems", "data")  # the subject of a study, which nobody changes for the sake of an option
TIME_ENDINGS = ("seconds", "latency", "deadline", "patience")  # endings of keys that are times
UNITS = {"us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}  # in seconds
COMPARISONS = {"gt": ">", "ge": ">=", "lt": "<", "le": "<="}
TYPES = {
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
}


@typing.dataclass_transform(frozen_default=True, field_specifiers=(msgspec.field,))
class StudyTable(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of an experiment file, whose fields are its keys, with types, defaults and descriptions."""

    refused: ClassVar[dict[str, str]] = {}  # keys of similar tables that this one refuses -> the reason

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__post_init__" in vars(cls):
            type.__setattr__(cls, "__post_init__", wrap_post_init(vars(cls)["__post_init__"]))

    @classmethod
    def build(cls, table: Any, path: str) -> Self:
        """Build the table at ``path`` and check its values; UserError names the wrong key."""
        return cls.fill(copy_table(table, path, f"{path} is a table, so write {path}.KEY = VALUE"), path)

    @classmethod
    def build_beside_number(cls, table: Any, path: str) -> Self:
        """Build the table where the value at ``path`` could be a number, which stays one."""
        return cls.build(table, path)

    @classmethod
    def fill(cls, table: dict[str, Any], path: str) -> Self:
        """Build the table from a dict without the key ``name``, checking each value against the type of its field."""
        fields = fields_of(cls)
        for key in table:
            if key not in fields and key in cls.refused:
                raise UserError(f"{join_key(path, key)} cannot be set: {cls.refused[key]}")
            if key not in fields:
                cls.refuse_key(key, table[key], path)
        # Values after all keys: whoever misspells a key should read of that, and not of the value of another.
        values = {}
        for key, value in table.items():
            values[fields[key].name] = convert(value, fields[key].type, join_key(path, key))
        for key, field in fields.items():
            if field.required and key not in table:
                raise UserError(f"{join_key(path, key)} is missing: it has no default")
        try:
            return cls(**values)
        except ValueError as error:
            raise UserError(f"{path}: {error}") from None

    @classmethod
    def refuse_key(cls, key: str, value: Any, path: str) -> NoReturn:
        """Raise UserError for a key that this table does not have, with the nearest key or all."""
        raise_unknown("key", key, fields_of(cls), path)


def wrap_post_init(check: Callable[[Any], None]) -> Callable[[Any], None]:
    """Wrap the ``__post_init__`` of a table so that its errors are a UserError where an object is made in Python."""

    @functools.wraps(check)
    def call(table: Any) -> None:
        try:
            check(table)
        except (ValueError, TypeError, AttributeError) as error:
            raise error_to_raise(table, error) from None

    return call


def error_to_raise(table: Any, error: Exception) -> Exception:
    """Return the error to raise for one in ``__post_init__``: about a value of a wrong type, or its ValueError."""
    cls: Any = type(table)
    if type(error) is ValueError:
        return InvalidValue(str(error))
    # msgspec does not check the types of an object's values, so wrong ones, which a study refuses, may fail here
    for key, field in fields_of(cls).items():
        value = getattr(table, field.name)
        where = f"{cls.__name__}.{key}"
        if value is None and type(None) not in analyse_type(field.type)[2]:
            return InvalidValue(f"{where} = None is wrong: leave it out for the default")
        if StudyTable not in type(value).__mro__:
            convert(value, field.type, where)
    return error


@cache
def fields_of(cls: type[StudyTable]) -> dict[str, Any]:
    """Return key -> field of a table, whose attribute is field.name; cached, because reading annotations is slow."""
    return {field.encode_name: field for field in msgspec.structs.fields(cls)}


class Component(StudyTable, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="name"):
    """A table with a ``name``: the base of algorithms, problems, data sources, partitions, selections and step rules.

    The base class of a family (``Algorithm``, ``Step`` …) lists the members in ``choices``: name -> "module:Class".
    ``plugins`` finds members from outside mpifed, which must define the abstract methods of the family.
    """

    choices: ClassVar[dict[str, str]] = {}
    default: ClassVar[str] = ""
    kind: ClassVar[str] = ""  # plural name of the family; mpifed.KIND is its group of entry points
    checks: ClassVar[str] = ""  # the module whose GUARDS check the results of a user's class
    guards: ClassVar[dict[str, Any]] = {}  # without such a module: the guards themselves, by method

    @property
    def supports(self) -> Supports:
        """The promises that hold with this component and its options, as its own class declares."""
        return NOTHING_SUPPORTED

    @property
    def unsupported(self) -> Reasons:
        """The reasons why other promises do not hold with it, and what would be right."""
        return NO_REASONS

    @classmethod
    def build(cls, table: Any, path: str) -> Self:
        """Build the component that a table names; a plain string stands for a table with that name."""
        table = copy_table(table, path, f"{path} is a table, such as {path}.name = {cls.default!r}", short="name")
        name = table.pop("name", cls.default)
        return cls.member(name, path).fill(table, path)

    @classmethod
    def member(cls, name: Any, path: str) -> type[Self]:
        """Return the class called ``name`` in this family, of mpifed or of a plugin; UserError if there is none."""
        if not isinstance(name, str):
            raise_unknown(path.rsplit(".", 1)[-1], name, cls.names())
        # mpifed's classes first, so that no installed package can change the meaning of a study.
        if name in cls.choices:
            module, _, attribute = cls.choices[name].partition(":")
            return getattr(importlib.import_module(module), attribute)
        try:
            member = plugins.find_class(cls, name)
        except ValueError as error:
            raise UserError(f"{path} = {shorten_value(name)} is wrong: {error}") from None
        return member or raise_unknown(path.rsplit(".", 1)[-1], name, cls.names())

    @classmethod
    def refuse_key(cls, key: str, value: Any, path: str) -> NoReturn:
        """Raise UserError for a key that this component does not have, with the members of the family that have it."""
        family: Any = next((base for base in cls.__mro__ if "choices" in vars(base)), cls)
        if family.kind in SUBJECTS:
            super().refuse_key(key, value, path)
        owners = [
            name for name in family.choices if name != cls.label() and key in fields_of(family.member(name, path))
        ]
        if not owners or difflib.get_close_matches(key, list(fields_of(cls)), 1):
            super().refuse_key(key, value, path)
        keys = f"the choices are {', '.join(fields_of(cls))}" if fields_of(cls) else f"{cls.label()} has none"
        raise UserError(
            f"unknown key {join_key(path, key)!r}; {keys}; with {path}.name = {toml_value(owners[0])} there is {key}"
        )

    @classmethod
    def names(cls) -> list[str]:
        """Return all names of this family: those of mpifed, then those of installed packages."""
        return list(dict.fromkeys([*cls.choices, *plugins.find_entry_points(cls.kind)]))

    @classmethod
    def label(cls) -> str:
        """Return the name of this class in an experiment file."""
        return str(cls.__struct_config__.tag)


def copy_table(table: Any, path: str, right: str, short: str = "") -> dict[str, Any]:
    """Return a copy of a user's table; a text alone becomes its key ``short``. UserError with ``right`` for others."""
    full = {short: table} if short and isinstance(table, str) else table
    try:
        return msgspec.convert(full, dict[str, Any])
    except msgspec.ValidationError:
        raise UserError(f"{path} = {shorten_value(table)} is wrong: {right}") from None


def convert(value: Any, type_: Any, path: str) -> Any:
    """Convert ``value`` to the type ``type_``; UserError with ``path`` if that is impossible."""
    family, choices, types = analyse_type(type_)
    if family is not None and not (float in types and is_number(value)):
        build = family.build_beside_number if float in types else family.build
        return value if value is None else build(value, path)
    if choices and value is not None and value not in choices:
        right = " or ".join(map(toml_value, choices))
        raise UserError(f"{path} = {shorten_value(value)} is wrong: it must be {right}")
    if is_number(value, float):
        if not math.isfinite(value):
            raise UserError(f"{path} = {value} is wrong: it must be a finite number")
        # rounds = 1e3 means a whole number: TOML has no integers with exponents.
        if value.is_integer() and int in types and float not in types:
            value = int(value)
    try:
        converted = msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        text = str(error)
        if {int, float} <= types and is_number(value, int):  # msgspec names the limit of whole numbers alone
            text = convert_error(float(value), type_)
        # for a text beside numbers msgspec names the wrong text, and not the right ones
        numbers = f"it must be a number or {list_literals(type_)}"
        right = numbers if "enum" in text else add_limits(rewrite_error(text), type_)
        raise UserError(f"{path} = {shorten_value(value)} is wrong: {right}{seconds_hint(value, path)}") from None
    # TOML and Python have whole numbers of any size, while numpy and HDF5, which store them, have 64 bits.
    if is_number(value, int) and not -(2**63) <= value < 2**63:
        raise UserError(f"{path} = {value} is wrong: an integer must fit into 64 bits")
    return converted


def convert_error(value: Any, type_: Any) -> str:
    """Return what msgspec says against ``value``."""
    try:
        msgspec.convert(value, type_)
    except msgspec.ValidationError as error:
        return str(error)
    return ""


@cache
def analyse_type(type_: Any) -> tuple[type[StudyTable] | None, tuple[Any, ...], frozenset[type]]:
    """Return the Table in the type of a field, its choices if it takes nothing else, and all classes in it."""
    parts = list(walk_type(type_))
    types = [part for part in parts if isinstance(part, type)]
    literal = next((part for part in parts if typing.get_origin(part) is typing.Literal), None)
    # With another type beside the choices, as in Literal["auto"] | float, msgspec's sentence says both.
    choices = () if {int, float, str, bool, list} & {*types} else typing.get_args(literal)
    return next((part for part in types if issubclass(part, StudyTable)), None), choices, frozenset(types)


def list_literals(type_: Any) -> str:
    """List the texts that a type takes beside numbers, for a sentence."""
    literals = (part for part in walk_type(type_) if typing.get_origin(part) is typing.Literal)
    return " or ".join(toml_value(text) for part in literals for text in typing.get_args(part))


def add_limits(text: str, type_: Any) -> str:
    """Complete the end of a sentence about a limit of a number with the second limit of the type, if it has two."""
    match = re.fullmatch(r"(it must be a (?:whole )?number) [<>]=? \S+", text)
    metas = [meta for part in walk_type(type_) for meta in getattr(part, "__metadata__", ())]
    pairs = [(sign, getattr(meta, name)) for meta in metas for name, sign in COMPARISONS.items()]
    limits = list(dict.fromkeys(f"{sign} {limit}" for sign, limit in pairs if limit is not None))
    return f"{match[1]} {' and '.join(limits)}" if match and len(limits) == 2 else text


def seconds_hint(value: Any, path: str) -> str:
    """Return a hint with the seconds to write for a time such as 50ms; else an empty text."""
    if not path.endswith(TIME_ENDINGS):
        return ""
    match = re.fullmatch(r"([0-9.eE+-]*[0-9.]) ?(us|µs|ms|s|min|h)", str(value))
    return f"; in seconds that is {float(match[1]) * UNITS[match[2]]:g}" if match else ""


def walk_type(type_: Any) -> Iterator[Any]:
    """Yield a type and, recursively, its arguments, as in X | None or Annotated[X, …]."""
    yield type_
    for part in getattr(type_, "__args__", ()):
        yield from walk_type(part)


def shorten_value(value: Any) -> str:
    """Write a value as TOML text for a message; a long one is cut in the middle."""
    text = toml_value(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}…{text[-LONGEST // 4 :]}"


def rewrite_error(text: str) -> str:
    """Rewrite an error message of msgspec, such as "Expected `int`, got `str`", as the end of a sentence."""
    text = re.sub(r" \| null|`", "", text)
    for type_, words in TYPES.items():
        text = re.sub(rf"\b{type_}\b", words, text)
    text = text.replace(" | ", " or ").replace("a whole number or a number", "a number")
    return (text[:1].lower() + text[1:]).replace("expected ", "it must be ").replace(", got ", ", not ")
