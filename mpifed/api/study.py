"""The experiment that the arguments of a Python call describe."""

import copy
import os
import reprlib
from collections.abc import Iterator, Mapping
from typing import Any

from mpifed.core import plugins
from mpifed.core.errors import UserError
from mpifed.core.objects import plain
from mpifed.core.toml import join, toml_value
from mpifed.experiment import config as configuration
from mpifed.experiment.config import Setting

Study = str | os.PathLike[str] | Mapping[str, Any] | None


def study(given: Study, overrides: Mapping[str, Any] | None, more: Mapping[str, Any]) -> dict[str, Any]:
    """The table of an experiment file or a mapping (None: the default study), with overrides applied.

    UserError for what cannot be read, and for values that an experiment cannot hold.
    """
    # classes of the call before: one that a notebook has defined anew since then may have the same name
    plugins.given.clear()
    if given is None:
        table = copy.deepcopy(configuration.DEFAULT_STUDY)
    elif isinstance(given, Mapping):
        table = applied({}, settings(given))
    elif isinstance(given, str | os.PathLike):
        table = configuration.read(given)
    else:
        raise UserError(f"the study {reprlib.repr(given)} is neither the path of an experiment file nor a mapping")
    return applied(table, [*settings(overrides), *settings(more)])


def settings(overrides: Mapping[str, Any] | None) -> list[Setting]:
    """The settings of a mapping with nested tables or dotted keys. UserError where it is none."""
    if isinstance(overrides, str | os.PathLike):
        raise UserError(
            f"overrides = {os.fspath(overrides)!r} is wrong: the second argument is a mapping of settings; "
            "the result file is path=…"
        )
    if overrides is not None and not isinstance(overrides, Mapping):
        raise UserError(f'overrides = {reprlib.repr(overrides)} is wrong: write a mapping, such as {{"seed": 3}}')
    return list(walk(overrides or {}, ""))


def walk(table: Mapping[str, Any], front: str) -> Iterator[Setting]:
    """The settings in a table at the dotted key ``front``.

    A mapping changes the keys that it names; a component replaces what was there.
    """
    for name, value in table.items():
        key = join(front, str(name))
        if isinstance(value, Mapping) and value:
            yield from walk(value, key)
        else:
            whole = None if value is None else plain(value, key)
            yield Setting(f"{key}={toml_value(whole)}", key.split("."), whole)


def applied(table: dict[str, Any], found: list[Setting]) -> dict[str, Any]:
    """The table with settings applied; an empty mapping leaves what is there, and None stands for the default."""
    # ``data={}`` from a program that adds keys now and then is no wish to have no data
    table = configuration.settle(table, [one for one in found if one.value != {}])
    for one in found:
        part: Any = table
        for key in one.keys if one.value == {} else ():
            part = part.setdefault(key, {}) if isinstance(part, dict) else None
    return table


def words(overrides: Mapping[str, Any] | None, more: Mapping[str, Any]) -> list[str]:
    """The settings as KEY=VALUE, as on the command line."""
    plugins.given.clear()
    found = [*settings(overrides), *settings(more)]
    for one in found:
        if one.value is None:
            raise UserError(f"{'.'.join(one.keys)} = None is wrong: write its value")
    return [one.text for one in found]
