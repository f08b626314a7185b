"""Hashes of the parts of a run, from its result file and its checkpoint as they lie on the disk.

model: /model. ledger: what travelled between server and clients, in /rounds and in the checkpoint. state: the arrays
of the checkpoint, in client order. columns: all other numbers of the file, with the attributes in ``SAID`` and those of
/certificate, and each of them by its name. wire: calls and messages between ranks; bytes: their bytes, in which names
of client methods count. Left out: what a clock measured, memory, ranks, versions, notes, and the experiment.
"""

import json
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

import h5py
import numpy as np

LEDGER = ("exchanges", "uploads", "downloads", "bytes_up", "bytes_down", "bits_up", "bits_down")
SAID = ("clients", "features", "status", "stop_reason", "kernels", "privacy", "rounds_redrawn")
COUNTED = {
    "wire": ("clients", "samples", "mpi_calls", "mpi_messages_received"),
    "bytes": ("mpi_bytes_sent", "mpi_bytes_received"),
}
NAMED = ("rounds/", "clients/", "unseen/", "certificate/")  # groups whose columns have a hash of their own
SCALES = ("client", "data_client", "round", "samples")  # but for these
Arrays = dict[str, np.ndarray]
Hashes = dict[str, str]  # part or column -> hash


def digest(arrays: Arrays, length: int = 16) -> str:
    """The hash of arrays by name, whatever their order: names, types, shapes and bits."""
    found = sha256()
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        array = array.astype("S") if array.dtype.hasobject else array
        found.update(f"{name} {array.dtype.str} {array.shape};".encode())
        found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()[:length]


def checkpoint(folder: Path) -> tuple[Arrays, Arrays]:
    """The arrays of a checkpoint, and the ledger in it."""
    about = json.JSONDecoder().raw_decode((folder / "state.json").read_text("utf-8"))[0]  # a checksum follows
    loaded = {path.stem.rpartition("-")[2]: dict(np.load(path)) for path in folder.glob("*.npz")}
    found = {f"server {name}": array for name, array in loaded.pop("server").items()}
    starts = sorted(map(int, loaded))
    sizes = np.diff([*starts, about["cuts"][-1]])
    hosts = [loaded[str(start)] for start in starts]
    like = {name: array for host in hosts for name, array in host.items() if name != "compute seconds"}
    for name, array in like.items():
        none = [np.zeros((size, *array.shape[1:]), array.dtype) for size in sizes]  # where no client has uploaded yet
        rows = [host.get(name, zeros) for host, zeros in zip(hosts, none, strict=True)]
        found[f"client {name}"] = np.concatenate(rows)
    found["clock"] = np.array([about["round"], about["simulated"]])
    return found, {f"checkpoint {name}": np.array(value) for name, value in about["ledger"].items()}


def parts(path: Path) -> Hashes:
    """The hash of each part of a run, and a short one of each column."""
    left: Arrays = {}
    with h5py.File(path) as file:
        file.visititems(lambda name, item: left.update({name: item[()]} if isinstance(item, h5py.Dataset) else {}))
        left = {name.replace("stored_round", "round"): array for name, array in left.items()}  # as when recorded
        said = {f"attribute/{name}": file.attrs[name] for name in SAID if name in file.attrs}
        certificate = file["certificate"].attrs if "certificate" in file else {}
        said |= {f"certificate/{name}": certificate[name] for name in certificate}

    def taken(wanted: Callable[[str], bool]) -> Arrays:
        return {name: left.pop(name) for name in list(left) if wanted(name)}

    taken(lambda name: name.endswith("_seconds") and not name.endswith("simulated_seconds"))
    state, charged = checkpoint(Path(f"{path}.checkpoint"))
    model = taken(lambda name: name.startswith("model/"))
    ledger = taken(lambda name: name.startswith("rounds/") and name[7:] in LEDGER) | charged
    ranks = taken(lambda name: name.startswith("ranks/") or name == "clients/rank")
    columns = left | {name: np.array(str(value)) for name, value in said.items()}
    whole = {"model": model, "state": state, "ledger": ledger, "columns": columns}
    counted = COUNTED if len(ranks["ranks/rank"]) > 1 else {"wire": COUNTED["wire"] + COUNTED["bytes"]}
    whole |= {part: {name: ranks[f"ranks/{name}"] for name in names} for part, names in counted.items()}
    named = [name for name in sorted(columns) if name.startswith(NAMED) and name.rpartition("/")[2] not in SCALES]
    return {part: digest(arrays) for part, arrays in whole.items()} | {
        name.replace(" ", "-"): digest({"": columns[name]}, 4) for name in named
    }
