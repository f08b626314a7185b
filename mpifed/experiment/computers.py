"""Hardware and software of a run on which the last bits depend: kernels, versions, processors and devices.

The result file records them; a note says where ranks differ, and where a run is resumed with others.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mpifed.core.arrays import import_torch
from mpifed.experiment.checkpoint import StoredCheckpoint
from mpifed.experiment.kernels import kernel_attributes
from mpifed.experiment.prepare import PreparedRun
from mpifed.features.settings import DEVICES
from mpifed.kernels import torch_device
from mpifed.kernels.torch_device import kernel_device
from mpifed.mpi.world import World
from mpifed.results import provenance
from mpifed.results.result import RunRecord

UNEQUAL = {
    "blas": "BLAS and its kernels, which depend on the processor,",
    "device": "devices of PyTorch",
}
COMPARED = {  # attribute of a result file -> its name in a note
    "kernels": "kernels",
    "numba": "numba",
    "torch": "torch",
    "device": "device",
    "numpy": "numpy",
    "blas": "BLAS",
}
FIELD = "computed_otherwise"  # attribute: the changes at each resumption


def gather_hardware(parts: PreparedRun, world: World) -> PreparedRun:
    """Add BLAS and devices of all ranks to ``parts`` at rank 0; all ranks call it."""
    rows = world.collect((provenance.describe_blas(), local_device(parts)))
    blas, devices = (tuple([row[k] for row in rows]) for k in range(2))
    return parts._replace(blas=blas, devices=devices)


def local_device(parts: PreparedRun) -> str:
    """Return the device on which PyTorch computes for the clients of this rank; "" without clients or PyTorch."""
    if parts.host is None:
        return ""
    setup = parts.setup
    used = kernel_device(setup.kernels) if setup.kernels in DEVICES else setup.problem.computer()
    return "" if used is None else torch_device.describe_device(used)


def hardware_attributes(parts: PreparedRun) -> dict[str, Any]:
    """Return the root attributes of a result that record kernels, BLAS and devices."""
    setup = parts.setup
    attributes: dict[str, Any] = {**kernel_attributes(setup.kernels), "blas": parts.blas[0]}
    used = next(filter(None, parts.devices), "")
    if used:
        attributes |= {"torch": import_torch().__version__, "device": used}
    return attributes | setup.problem.run_attributes(parts.data.n, setup.start)


def hardware_differences(blas: Sequence[str], devices: Sequence[str]) -> list[str]:
    """Return a sentence for each of BLAS and PyTorch devices that differs between ranks."""
    sentences = []
    for name, counts in {"blas": Counter(blas), "device": Counter(filter(None, devices))}.items():
        if len(counts) > 1:
            each = ", ".join(f"{value or 'one that does not tell'} on {number}" for value, number in counts.items())
            sentences.append(
                f"{UNEQUAL[name]} differ between the {counts.total()} ranks: {each} of them; the last bits of this run "
                "depend on which rank has which clients"
            )
    return sentences


def hardware_changes(now: Mapping[str, Any], before: RunRecord | None, saved: StoredCheckpoint | None) -> list[str]:
    """Return a sentence where a run continues with other kernels, versions or devices than its file records.

    Attributes that the file lacks, as one of an older version may, are not compared.
    """
    if saved is None or before is None:
        return []
    now = {"numpy": np.__version__, **now}
    pairs = [(COMPARED[name], str(before.attrs.get(name, "")), str(now.get(name, "none"))) for name in COMPARED]
    if "group" in before.attrs:
        pairs.append(("clients", group_text(before.attrs["group"]), group_text(now.get("group"))))
    changes = [f"{name} ({was} → {now or 'unknown'})" for name, was, now in pairs if was and was != now]
    if not changes:
        return []
    return [
        f"from round {saved.round + 1} on this run is computed otherwise, and its last bits depend on that: "
        f"{', '.join(changes)}"
    ]


def earlier_changes(before: RunRecord | None) -> list[str]:
    """Return the sentences of earlier resumptions."""
    return [] if before is None else str(before.attrs.get(FIELD, "")).splitlines()


def group_text(group: int | None) -> str:
    """Return how many clients are computed at once, as text."""
    return f"in groups of {group}" if group is not None and group > 1 else "one at a time"
