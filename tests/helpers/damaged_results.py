"""Every attribute and dataset of a result file, damaged in every way: another type or shape, empty, missing, huge."""

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from mpifed.core.toml import flatten, from_toml, to_toml

ESCAPE = "\x1b]0;owned\x07\x1b[31mred\x9b2J\r\n"  # what would change a terminal
VALUES: dict[str, Any] = {  # what replaces an attribute
    "text": "many",
    "no text": "",
    "escape": ESCAPE,
    "number": 7,
    "zero": 0,
    "below": -3,
    "large": 10**8,
    "largest": 2**63 - 1,
    "fraction": 0.5,
    "nan": np.nan,
    "inf": np.inf,
    "half": np.float16(1.5),
    "true": True,
    "complex": 1j,
    "bytes": np.bytes_(b"\xff\xfe"),
    "array": np.zeros(3),
    "table": np.zeros((2, 2), int),
    "texts": ["a", ESCAPE],
    "empty": np.zeros(0),
    "null": h5py.Empty("f8"),
    "record": np.zeros((), [("a", "f8"), ("b", "i4")]),
}


def placed(value: Any) -> Callable[[h5py.Group, str, h5py.Dataset], None]:
    """What puts a value into the place of a dataset."""

    def put(group: h5py.Group, key: str, old: h5py.Dataset) -> None:
        del group[key]
        group[key] = value

    return put


def changed(how: Callable[[Any], Any]) -> Callable[[h5py.Group, str, h5py.Dataset], None]:
    """What puts a function of its values into the place of a dataset."""

    def put(group: h5py.Group, key: str, old: h5py.Dataset) -> None:
        value = how(old[()])
        del group[key]
        group[key] = value

    return put


def filled(number: float) -> Callable[[Any], Any]:
    return lambda values: np.full(values.shape, number)


def whole(number: int, kind: str = "i8") -> Callable[[Any], Any]:
    return lambda values: np.full(values.shape, number, kind)


def words(text: str) -> Callable[[Any], Any]:
    return lambda values: np.full(values.shape, text, object)


def declared(shape: tuple[int, ...], dtype: Any = "f8") -> Callable[[h5py.Group, str, h5py.Dataset], None]:
    """What puts a dataset that declares more than the file holds into the place of another."""

    def put(group: h5py.Group, key: str, old: h5py.Dataset) -> None:
        del group[key]
        group.create_dataset(key, shape, dtype, chunks=(1,) * (len(shape) - 1) + (1024,))

    return put


def grouped(group: h5py.Group, key: str, old: h5py.Dataset) -> None:
    del group[key]
    group.create_group(key)


def missing(group: h5py.Group, key: str, old: h5py.Dataset) -> None:
    del group[key]


DATASETS: dict[str, Callable[[h5py.Group, str, h5py.Dataset], None]] = {  # what replaces a dataset
    "missing": missing,
    "group": grouped,
    "scalar": placed(3.0),
    "text": placed("word"),
    "null": placed(h5py.Empty("f8")),
    "empty": changed(lambda values: values[:0]),
    "no columns": changed(lambda values: values.reshape(len(values), -1)[:, :0]),
    "shorter": changed(lambda values: values[:-1]),
    "one": changed(lambda values: values[:1]),
    "longer": changed(lambda values: np.concatenate([values, values])),
    "table": changed(lambda values: np.stack([values] * 2, axis=-1)),
    "backwards": changed(lambda values: values[::-1]),
    "texts": changed(words("a")),
    "escape": changed(words(ESCAPE)),
    "half": changed(lambda values: np.full(values.shape, np.inf, np.float16)),
    "single": changed(lambda values: np.full(values.shape, 1e30, np.float32)),
    "bytes": changed(whole(3, "u1")),
    "unsigned": changed(whole(2**64 - 1, "u8")),
    "bools": changed(whole(1, "?")),
    "nan": changed(filled(np.nan)),
    "inf": changed(filled(-np.inf)),
    "large": changed(filled(1e308)),
    "fractions": changed(filled(0.5)),
    "zero": changed(whole(0)),
    "below": changed(whole(-7)),
    "largest": changed(whole(2**63 - 1)),
    "least": changed(whole(-(2**63))),
    "complex": changed(lambda values: np.full(values.shape, 1j)),
    "record": changed(lambda values: np.zeros(values.shape, [("a", "f8"), ("b", "i4")])),
    "endless": declared((10**12,)),
    "endless table": declared((6, 10**11)),
}
SETTINGS: dict[str, Any] = {  # what replaces a value of the configuration
    "text": "many",
    "escape": ESCAPE,
    "number": 3,
    "below": -1,
    "large": 10**8,
    "nan": float("nan"),
    "true": True,
    "list": [1, [2]],
    "table": {"a": 1},
}
Spoil = Callable[[h5py.File], None]


def names(whole: Path) -> tuple[list[str], list[str]]:
    """The groups, "" the root, and the datasets of a result file."""
    groups, datasets = [""], []
    with h5py.File(whole) as file:
        file.visititems(lambda name, item: (datasets if isinstance(item, h5py.Dataset) else groups).append(name))
    return groups, datasets


def of_attributes(whole: Path) -> Iterator[tuple[str, str, Spoil]]:
    """Attribute, damage, and what does it, of all attributes of a result file; those of one dataset stand for all."""
    with h5py.File(whole) as file:
        places = [*names(whole)[0], "rounds/objective", "rounds/round", "model/x"]
        found = [(place, key) for place in places for key in file[place or "/"].attrs]
    for place, key in found:
        yield f"{place}:{key}", "missing", lambda out, place=place, key=key: out[place or "/"].attrs.__delitem__(key)
        for damage, value in VALUES.items():

            def spoil(out: h5py.File, place: str = place, key: str = key, value: Any = value) -> None:
                del out[place or "/"].attrs[key]
                out[place or "/"].attrs[key] = value

            yield f"{place}:{key}", damage, spoil


def of_datasets(whole: Path) -> Iterator[tuple[str, str, Spoil]]:
    """The same of its datasets, and of its groups, which may be missing or a dataset."""
    groups, datasets = names(whole)
    for name in datasets:
        place, _, key = name.rpartition("/")
        for damage, put in DATASETS.items():

            def spoil(out: h5py.File, place: str = place, key: str = key, put: Any = put) -> None:
                group = out[place or "/"]
                put(group, key, group[key])

            yield name, damage, spoil
    for name in groups[1:]:
        yield name, "missing", lambda out, name=name: out.__delitem__(name)
        yield name, "dataset", lambda out, name=name: (out.__delitem__(name), out.__setitem__(name, np.zeros(3)))
        yield name, "escape", lambda out, name=name: out[name].__setitem__(ESCAPE, np.zeros(6))


def of_settings(whole: Path) -> Iterator[tuple[str, str, Spoil]]:
    """The same of the values of its configuration, of whole tables of it, and of keys that it does not have."""
    with h5py.File(whole) as file:
        table = from_toml(file.attrs["config"], "this")
    keys = dict.fromkeys([*table, *flatten(table), "system", "graph", "asynchronous", "compress", "masks", "other.key"])
    for key, (damage, value) in itertools.product(keys, [("missing", None), *SETTINGS.items()]):
        config = from_toml(to_toml(table), "this")
        *parents, last = key.split(".")
        part = config
        for parent in parents:
            part = part.setdefault(parent, {})
        part.pop(last, None)
        if value is not None:
            part[last] = value
        text = to_toml(config)
        yield f"config {key}", damage, lambda out, text=text: out.attrs.__setitem__("config", text)


def cases(whole: Path) -> list[tuple[str, str, Spoil]]:
    """Name, damage, and the function that does it to an open copy of a result file."""
    return [*of_attributes(whole), *of_datasets(whole), *of_settings(whole)]
