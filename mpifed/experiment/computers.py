"""What computes a run besides its settings, on which the last bits depend: kernels, versions, processors and devices.

The result file has it; a note says where ranks differ, and where a run is resumed with something else.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mpifed.core.arrays import pytorch
from mpifed.experiment.checkpoint import Saved
from mpifed.experiment.kernels import recorded
from mpifed.experiment.prepare import Prepared
from mpifed.features.settings import DEVICES
from mpifed.kernels import torch_device
from mpifed.kernels.torch_device import device
from mpifed.mpi.world import World
from mpifed.results import provenance
from mpifed.results.result import Result

UNEQUAL = {
    "blas": "BLAS and its kernels, which depend on the processor,",
    "device": "devices of PyTorch",
}
COMPARED = {  # attributes of a result file, and what a note calls them
    "kernels": "kernels",
    "numba": "numba",
    "torch": "torch",
    "device": "device",
    "numpy": "numpy",
    "blas": "BLAS",
}
FIELD = "computed_otherwise"  # the attribute with the sentences of all resumptions


def with_computers(parts: Prepared, world: World) -> Prepared:
    """The same with what computes on each rank, at rank 0; all ranks call it."""
    found = world.collect((provenance.blas(), device_here(parts)))
    blas, devices = (tuple([row[k] for row in found]) for k in range(2))
    return parts._replace(blas=blas, devices=devices)


def device_here(parts: Prepared) -> str:
    """The device on which PyTorch computes for the clients of this rank; empty where there are none, or no PyTorch."""
    if parts.host is None:
        return ""
    setup = parts.setup
    where = device(setup.kernels) if setup.kernels in DEVICES else setup.problem.computer()
    return "" if where is None else torch_device.device_text(where)


def computed_by(parts: Prepared) -> dict[str, Any]:
    """The root attributes of a result that say what computes it."""
    setup = parts.setup
    found: dict[str, Any] = {**recorded(setup.kernels), "blas": parts.blas[0]}
    used = next(filter(None, parts.devices), "")
    if used:
        found |= {"torch": pytorch().__version__, "device": used}
    return found | setup.problem.described(parts.data.n, setup.start)


def different(blas: Sequence[str], devices: Sequence[str]) -> list[str]:
    """A sentence each where BLAS, or the devices of PyTorch where it computes, differ between ranks."""
    found = []
    for name, kinds in {"blas": Counter(blas), "device": Counter(filter(None, devices))}.items():
        if len(kinds) > 1:
            each = ", ".join(f"{kind or 'one that does not tell'} on {number}" for kind, number in kinds.items())
            found.append(
                f"{UNEQUAL[name]} differ between the {kinds.total()} ranks: {each} of them; the last bits of this run "
                "depend on which rank has which clients"
            )
    return found


def otherwise(now: Mapping[str, Any], before: Result | None, saved: Saved | None) -> list[str]:
    """A sentence where a run goes on with something else than its file was computed with.

    What the file does not tell, such as one of an older version, is not compared.
    """
    if saved is None or before is None:
        return []
    now = {"numpy": np.__version__, **now}
    pairs = [(COMPARED[name], str(before.attrs.get(name, "")), str(now.get(name, "none"))) for name in COMPARED]
    if "group" in before.attrs:
        pairs.append(("clients", group_text(before.attrs["group"]), group_text(now.get("group"))))
    found = [f"{name} ({was} → {now or 'unknown'})" for name, was, now in pairs if was and was != now]
    if not found:
        return []
    return [
        f"from round {saved.round + 1} on this run is computed otherwise, and its last bits depend on that: "
        f"{', '.join(found)}"
    ]


def earlier(before: Result | None) -> list[str]:
    """The sentences of earlier resumptions."""
    return [] if before is None else str(before.attrs.get(FIELD, "")).splitlines()


def group_text(group: int | None) -> str:
    """How many clients are computed at once."""
    return f"in groups of {group}" if group is not None and group > 1 else "one at a time"
