"""What the file of a resumed run begins with: the rounds of its result so far."""

from collections.abc import Mapping
from functools import partial

import h5py

from mpifed.results.model_log import RowLog, stored_models
from mpifed.results.result import Result, read
from mpifed.results.rounds_table import RoundsTable


def copy(before: Result, last: int, rounds: RoundsTable, models: RowLog, by_client: Mapping[str, RowLog]) -> None:
    """Copy the rounds of another result up to round ``last``, and what it has beside some of them."""
    names = [name for name in before.rounds if name != "round"]
    for k in range(last + 1):
        ids = before.selected(k)
        # The same rows as the run itself wrote them: None lets a table of many clients say "all" in one number.
        if rounds.add({name: before.rounds[name][k] for name in names}, None if len(ids) == before.m else ids):
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
    """Copy every ``every``-th model up to round ``last``, and none that is there because a run ended with it."""
    # One at a time from the open dataset: all models together may not fit in memory.
    numbers, models = stored_models(file, name)
    for round, x in zip(numbers.tolist(), models or (), strict=False):
        if round <= last and round % every == 0:
            log.add(round, {"x": x})
