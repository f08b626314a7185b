"""Files of version 0.1.0: ``python -m tests.data.files_of_0_1_0.make FOLDER`` made files.tar.xz and numbers.json.

Later versions read them as they are: never write them anew. The archive has result files, a checkpoint and an
experiment file; numbers.json has what h5py finds in them, and begun.h5 after the rounds that ``resume`` is asked for.
"""

import json
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import h5py
import numpy as np

import mpifed

DATA = {"name": "gaussian", "clients": 5, "samples": 12, "features": 3, "task": "logistic"}
FAVG = {"name": "fedavg", "k0": 3}
STUDIES: dict[str, dict[str, Any]] = {
    "plain": {"data": {"clients": 4, "features": 3}, "rounds": 3},
    "features": {
        "data": DATA | {"test": 0.25},
        "algorithm": {"name": "pfedme", "begin": "server"},
        "selection": {"name": "uniform", "count": 2},
        "system": {"speed": 1e4, "latency": 0.01, "dropout": 0.2},
        "compress": {"up": {"name": "topk", "k": 2}},
        "evaluate": {"every": 2, "clients": True, "unseen": 1, "unseen_steps": 2},
        "record": {"personal": True, "models": 2},
        "rounds": 4,
    },
    "graph": {"data": {"clients": 4, "features": 3}, "algorithm": "dgd", "graph": "ring", "rounds": 3},
    "clients": {"data": DATA, "algorithm": FAVG, "evaluate": {"clients": ["accuracy", "auc"]}, "rounds": 2},
    "certified": {"data": DATA, "algorithm": {"name": "fedgia", "certify": True}, "rounds": 2},
    "begun": {"data": DATA, "algorithm": FAVG, "selection": {"name": "uniform", "share": 0.6}, "rounds": 3},
}
MORE = 6  # rounds to which begun.h5 is continued


def numbers(path: Path) -> dict[str, Any]:
    """What h5py finds in a file: its attributes, and its datasets by their names."""
    with h5py.File(path) as file:
        attrs = {name: value.item() if isinstance(value, np.generic) else value for name, value in file.attrs.items()}
        found: dict[str, Any] = {}
        file.visititems(lambda name, one: found.update({name: one}) if isinstance(one, h5py.Dataset) else None)
        texts = {name: h5py.check_string_dtype(one.dtype) for name, one in found.items()}
        arrays = {name: (one.asstr() if texts[name] else one)[()].tolist() for name, one in found.items()}
    return {"attrs": attrs, "arrays": arrays}


def anywhere(path: Path) -> None:
    """Leave out on which machine, and by which command, a file was written."""
    with h5py.File(path, "r+") as file:
        file.attrs["host"] = "localhost"
        file.attrs["command_line"] = "python -m tests.data.files_of_0_1_0.make"
        file["ranks/hostname"][...] = ["localhost"]


def main(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as work, tarfile.open(folder / "files.tar.xz", "w:xz") as archive:
        for name, study in STUDIES.items():
            path = Path(work, f"{name}.h5")
            result = mpifed.run(study, kernels="numpy", progress=False, path=path)
            assert result is not None
            anywhere(path)
            archive.add(path, path.name)
        archive.add(Path(work, "begun.h5.checkpoint"), "begun.h5.checkpoint")
        Path(work, "study.toml").write_text(result.attrs["config"], "utf-8")
        archive.add(Path(work, "study.toml"), "study.toml")
        found = {name: numbers(Path(work, f"{name}.h5")) for name in STUDIES}
    longer = mpifed.run(STUDIES["begun"], kernels="numpy", progress=False, rounds=MORE)
    assert longer is not None
    found["begun"]["longer"] = {"x": longer.x.tolist(), "objective": longer.rounds["objective"].tolist()}
    (folder / "numbers.json").write_text(json.dumps(found) + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
