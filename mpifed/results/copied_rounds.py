"""What a result file begins with: its root attributes and, when a run is resumed, the rounds of its result so far."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import h5py
import numpy as np

from mpifed.results.model_log import RowLog, stored_models
from mpifed.results.provenance import now, provenance
from mpifed.results.result import FORMAT, FORMAT_VERSION, Result, read
from mpifed.results.rounds_table import RoundsTable


def root_attributes(attrs: Mapping[str, Any], clients: int, before: Result | None, last: int) -> dict[str, Any]:
    """Root attributes of a run that begins, or that is resumed after round ``last`` of ``before``."""
    attributes = provenance() | dict(attrs)
    attributes |= {"format": FORMAT, "format_version": FORMAT_VERSION, "clients": clients}
    attributes |= {"status": "running", "stop_reason": "", "reduction": "", "started": now(), "finished": ""}
    if before is not None:
        again = f"{now()} from round {last} on {attributes.get('ranks', 1)} ranks"
        resumed = f"{before.attrs.get('resumed', '')}\n{again}".strip()
        attributes |= {"started": before.attrs.get("started", attributes["started"]), "resumed": resumed}
    return attributes


def copy(before: Result, last: int, rounds: RoundsTable, models: RowLog, by_client: Mapping[str, RowLog]) -> None:
    """Copy the rounds of another result up to round ``last``, and what it has beside some of them."""
    names = [name for name in before.rounds if name != "round"]
    for k in range(last + 1):
        ids = before.selected(k) if k else np.zeros(0)
        values = {name: before.rounds[name][k] for name in names}
        if rounds.add(values, None if k and len(ids) == before.m else ids):
            rounds.write()
    rounds.write()
    for part, log in by_client.items():
        if before.config.get("evaluate", {}).get(part):
            stored = before.by_client if part == "clients" else before.unseen
            for k, round in enumerate(number for number in stored["round"].tolist() if number <= last):
                log.add(round, {name: table[k] for name, table in stored.items() if table.ndim == 2})
    every = before.config.get("record", {}).get("models", 0)
    if every and before.path is not None:
        read(before.path, partial(copy_models, models, every, last))


def copy_models(log: RowLog, every: int, last: int, file: h5py.File, name: str) -> None:
    """Copy every ``every``-th model up to round ``last``; another one was that of the last round then."""
    numbers, models = stored_models(file, name)
    for round, x in zip(numbers.tolist(), models or (), strict=False):
        if round <= last and round % every == 0:
            log.add(round, {"x": x})
