"""The experiment that the arguments of a Python call describe."""

import copy
import os
import reprlib
from collections.abc import Iterator, Mapping
from typing import Any

from mpifed.core import plugins
from mpifed.core.errors import UserError
from mpifed.core.objects import to_plain
from mpifed.core.toml import join_key, toml_value
from mpifed.experiment import config as configuration
from mpifed.experiment.config import Override

StudyLike = str | os.PathLike[str] | Mapping[str, Any] | None


def build_table(source: StudyLike, overrides: Mapping[str, Any] | None, more: Mapping[str, Any]) -> dict[str, Any]:
    """Return the table of an experiment file or a mapping (None: the default study), with overrides applied.

    UserError for input that cannot be read, and for values that an experiment cannot hold.
    """
    # forget the classes of the previous call: a notebook may have redefined one under the same name
    plugins.passed_classes.clear()
    if source is None:
        table = copy.deepcopy(configuration.DEFAULT_STUDY)
    elif isinstance(source, Mapping):
        table = apply_settings({}, settings(source))
    elif isinstance(source, str | os.PathLike):
        table = configuration.read_experiment(source)
    else:
        raise UserError(f"the study {reprlib.repr(source)} is neither the path of an experiment file nor a mapping")
    return apply_settings(table, [*settings(overrides), *settings(more)])


def settings(overrides: Mapping[str, Any] | None) -> list[Override]:
    """Return the settings of a mapping with nested tables or dotted keys. UserError where it is none."""
    if isinstance(overrides, str | os.PathLike):
        raise UserError(
            f"overrides = {os.fspath(overrides)!r} is wrong: the second argument is a mapping of settings; "
            "the result file is path=…"
        )
    if overrides is not None and not isinstance(overrides, Mapping):
        raise UserError(f'overrides = {reprlib.repr(overrides)} is wrong: write a mapping, such as {{"seed": 3}}')
    return list(walk_settings(overrides or {}, ""))


def walk_settings(table: Mapping[str, Any], front: str) -> Iterator[Override]:
    """Yield the settings in a table at the dotted key ``front``.

    A mapping changes the keys that it names; a component replaces the whole table.
    """
    for name, value in table.items():
        key = join_key(front, str(name))
        if isinstance(value, Mapping) and value:
            yield from walk_settings(value, key)
        else:
            plain_value = None if value is None else to_plain(value, key)
            yield Override(f"{key}={toml_value(plain_value)}", key.split("."), plain_value)


def apply_settings(table: dict[str, Any], changes: list[Override]) -> dict[str, Any]:
    """Apply settings to a table; an empty mapping leaves the table as it is, and None stands for the default."""
    # ``data={}`` may come from a program that adds keys sometimes: it does not mean to have no data
    table = configuration.apply_overrides(table, [change for change in changes if change.value != {}])
    for change in changes:
        part: Any = table
        for key in change.keys if change.value == {} else ():
            part = part.setdefault(key, {}) if isinstance(part, dict) else None
    return table


def override_words(overrides: Mapping[str, Any] | None, more: Mapping[str, Any]) -> list[str]:
    """Return the settings as KEY=VALUE, as on the command line."""
    plugins.passed_classes.clear()
    changes = [*settings(overrides), *settings(more)]
    for change in changes:
        if change.value is None:
            raise UserError(f"{'.'.join(change.keys)} = None is wrong: write its value")
    return [change.text for change in changes]
