"""Resuming a run that was stopped, was killed or failed."""

from __future__ import annotations

import contextlib
import copy
import os
from collections.abc import Sequence
from typing import Any

import msgspec

from mpifed.core.errors import UserError
from mpifed.core.toml import flat, toml_value
from mpifed.experiment import checkpoint
from mpifed.experiment import config as configuration
from mpifed.results.netcdf import mend
from mpifed.results.result import Result, load

FREE = ("rounds", "stop", "checkpoint")  # what may change when a run is resumed


def resume(
    path: str | os.PathLike[str], words: Sequence[str]
) -> tuple[dict[str, Any], checkpoint.Saved | None, Result]:
    """The experiment with the overrides ``words``, the last checkpoint (None: start again) and the result so far.

    Raises UserError where the run is finished, where the file or the checkpoint cannot be read, and for an override
    that would make it another run.
    """
    with contextlib.suppress(OSError):  # load says what is wrong
        mend(path)
    before = load(path)
    saved = checkpoint.find(path)
    if before.status == "finished" and saved is None:
        raise UserError(
            f"{os.fspath(path)} is finished ({before.stop_reason}); a finished run can be resumed if it ran with "
            "checkpoint.keep = true"
        )
    if saved is not None and before.cr < saved.round:
        raise UserError(
            f"{os.fspath(path)} has {before.cr} rounds and its checkpoint is of round {saved.round}: they do not "
            "belong together"
        )
    table = configuration.override(copy.deepcopy(before.config), words)
    old, new = (flat(msgspec.to_builtins(configuration.experiment(part))) for part in (before.config, table))
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) != new.get(key) and key.split(".")[0] not in FREE:
            raise UserError(
                f"{key} = {toml_value(new.get(key))} is wrong: {os.fspath(path)} has {toml_value(old.get(key))}, and "
                f"only {', '.join(FREE[:-1])} and {FREE[-1]} may change when a run is resumed"
            )
    return table, saved, before
