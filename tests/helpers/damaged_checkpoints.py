"""Every array and entry of a checkpoint, damaged in every way and with the right checksum: as a stranger writes it."""

import contextlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from mpifed.core import checksummed
from tests.helpers.damaged_results import ESCAPE

ARRAYS: dict[str, Callable[[Any], Any] | None] = {  # what replaces an array; None: it is left out
    "missing": None,
    "empty": lambda values: np.zeros(0),
    "scalar": lambda values: np.float64(1.0),
    "shorter": lambda values: values[:-1] if values.ndim else values.reshape(1),
    "longer": lambda values: np.concatenate([values, values]) if values.ndim else np.stack([values, values]),
    "table": lambda values: np.stack([values, values], axis=-1),
    "texts": lambda values: np.full(values.shape, ESCAPE),
    "bytes": lambda values: np.full(values.shape, b"\xff"),
    "complex": lambda values: values + 1j,
    "single": lambda values: values.astype(np.float32),
    "half": lambda values: values.astype(np.float16),
    "bools": lambda values: values.astype(bool),
    "whole": lambda values: values.astype(np.int64),
    "unsigned": lambda values: np.full(values.shape, 2**64 - 1, np.uint64),
    "below": lambda values: np.full(values.shape, -7),
    "nan": lambda values: np.full(values.shape, np.nan),
    "large": lambda values: np.full(values.shape, 1e300),
    "largest": lambda values: np.full(values.shape, 2**63 - 1),
    "dates": lambda values: np.full(values.shape, "2020-01-01", "M8[D]"),
    "record": lambda values: np.zeros(values.shape, [("a", "f8")]),
}
ENTRIES: dict[str, Any] = {  # what replaces an entry of state.json
    "missing": None,
    "null": None,
    "text": "many",
    "escape": ESCAPE,
    "private": "__init__",
    "method": "label",
    "below": -1,
    "zero": 0,
    "large": 10**9,
    "huge": 10**30,
    "fraction": 0.5,
    "largest": 1e308,
    "true": True,
    "list": [1],
    "table": {"a": 1},
}
Damage = Callable[[], None]


def of_arrays(folder: Path) -> Iterator[tuple[str, str, Damage]]:
    """Array, damage, and what does it; every one is also renamed, and one more is put beside it."""
    for file in sorted(folder.glob("*.npz")):
        whole = checksummed.read(file)
        owner = file.stem.partition("-")[2]
        for name, values in whole.items():
            others = {key: rows for key, rows in whole.items() if key != name}
            for damage, how in ARRAYS.items():
                new = others if how is None else others | {name: how(values)}
                yield f"{owner}:{name}", damage, lambda file=file, new=new: checksummed.write(file, new)
            for damage, new in (("renamed", others | {ESCAPE[:5]: values}), ("more", whole | {"more": values})):
                yield f"{owner}:{name}", damage, lambda file=file, new=new: checksummed.write(file, new)


def of_entries(folder: Path) -> Iterator[tuple[str, str, Damage]]:
    """Entry, damage, and what does it."""
    file = folder / "state.json"
    whole = json.loads(checksummed.read_text(file) or b"")
    paths = [(key,) for key in whole]
    paths += [(key, inner) for key in ("ledger", "kinds") for inner in (*whole[key], "x", "new")]
    paths += [("cuts", 0), ("cuts", 1)]
    for path in paths:
        for damage, value in ENTRIES.items():
            new = json.loads(json.dumps(whole))
            part = new
            for key in path[:-1]:
                part = part[key]
            if damage == "missing" and isinstance(part, list | dict):
                with contextlib.suppress(KeyError):
                    del part[path[-1]]
            else:
                part[path[-1]] = value
            text = json.dumps(new).encode()
            yield ".".join(map(str, path)), damage, lambda text=text: checksummed.write_text(file, text)


def cases(folder: Path) -> list[tuple[str, str, Damage]]:
    """Name, damage, and the function that does it to the checkpoint in a folder."""
    return [*of_arrays(folder), *of_entries(folder)]
