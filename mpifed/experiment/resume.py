"""Resuming a run: one that was stopped, was killed or failed, or one that is finished and gets more rounds."""

import contextlib
import copy
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mpifed.core.errors import UserError, concerning
from mpifed.core.files import being_written
from mpifed.core.roles import TEST
from mpifed.experiment import config as configuration
from mpifed.experiment.checkpoint import Saved, find
from mpifed.experiment.lost_file import missing
from mpifed.experiment.stored_sizes import check_sizes
from mpifed.features.settings import Experiment
from mpifed.features.stop import Stop, ran_out
from mpifed.results.columns import COUNTED
from mpifed.results.netcdf import mend
from mpifed.results.result import Result, load

FREE = (
    "rounds",
    "stop",
    "reduction",
    "block_bytes",
    "patience",
    "checkpoint",
)  # what may change when a run is resumed


def resume(path: str | os.PathLike[str], words: Sequence[str]) -> tuple[dict[str, Any], Saved | None, Result]:
    """The experiment with the overrides ``words``, the last checkpoint (None: start again) and the result so far.

    Raises UserError where the run is under way, where it is finished and cannot go on, where it would have no round to
    go, where the file or the checkpoint cannot be read, and for an override that would make it another run.
    """
    name = os.fspath(path)
    if (gone := missing(path)) is not None:
        raise UserError(gone)
    with contextlib.suppress(OSError):  # load says what is wrong
        if os.path.isfile(path) and being_written(Path(path)):
            raise UserError(f"{name} is being written by another run: resume it when that has ended; SIGTERM ends it")
        mend(path)
    before = load(path)
    saved = find(path)
    if before.status == "finished" and saved is None:
        raise UserError(lacking(before, name))
    if saved is not None and before.cr < saved.round:
        raise UserError(
            f"{name} has {before.cr} rounds and its checkpoint is of round {saved.round}: they do not belong together"
        )
    if saved is not None and before.m != saved.cuts[-1]:
        raise UserError(
            f"{name} has {before.m} clients and its checkpoint {saved.cuts[-1]}: they do not belong together"
        )
    with concerning(name):
        old = configuration.experiment(before.config)
    check_sizes(before, old)
    table = configuration.override(copy.deepcopy(before.config), words)
    new = configuration.experiment(table)
    for key, was, wanted in configuration.differences(old, new, FREE):
        raise UserError(
            f"{key} = {wanted} is wrong: {name} has {was}, and "
            f"only {', '.join(FREE[:-1])} and {FREE[-1]} may change when a run is resumed"
        )
    if saved is not None:
        refuse_lacking(before, new, name)
        refuse_no_round(old, new, before, saved.round, name)
    return table, saved, before


def refuse_lacking(before: Result, new: Experiment, name: str) -> None:
    """UserError where a result has not the columns that stop rules look at."""
    needed = ["objective", "grad_norm_sq", "elapsed_seconds"]
    if new.stop.simulated_seconds:
        needed.append("simulated_seconds")
    for key in needed:
        if key not in before.rounds:
            raise UserError(f"{name} has no column rounds/{key}, which resume needs")


def lacking(before: Result, name: str) -> str:
    """Why a finished run without a checkpoint cannot go on, and what works."""
    if ran_out(before.stop_reason):
        return (
            f"{name} is finished ({before.stop_reason}) and the checkpoint to go on from, {name}.checkpoint, is not "
            "there: it was moved or removed, or not kept (checkpoint.keep = false), so run it again with more rounds"
        )
    return (
        f"{name} has converged ({before.stop_reason}) and such a run keeps no checkpoint: run it again with "
        f"{another(before.stop_reason)}, or with checkpoint.keep = true to go on later"
    )


def another(reason: str) -> str:
    """The stop rule to change where a run ended, or would end at once, for this reason."""
    rule = reason.partition(":")[0]
    if rule not in Stop.__struct_fields__:
        return "another stop rule"
    return f"another stop.{rule} ({'false' if rule == 'rising' else '0'} switches it off)"


def refuse_no_round(old: Experiment, new: Experiment, before: Result, done: int, name: str) -> None:
    """UserError where there is no round to go after ``done``; a run that was cut off there may still be finished."""
    finished = before.status == "finished"
    if new.rounds < done or (new.rounds == done and (finished or new.rounds != old.rounds)):
        more = f"write a larger number to go on, such as rounds={max(2 * done, 1)}"
        if new.rounds == old.rounds:
            raise UserError(f"{name} is finished, with all of its {done} rounds: {more}")
        raise UserError(f"rounds = {new.rounds} is wrong: {name} has {done} rounds already, so {more}")
    history = {key: column[: done + 1 : new.evaluate.every].tolist() for key, column in before.rounds.items()}
    n = 0 if before.x is None else before.x.size
    role = str(before.attrs.get("evaluated_on", TEST))
    if finished and (reason := new.stop.reason(history, before.m, n, role)) is not None:
        raise UserError(f"{name} would end at once ({reason}): to go on, write {another(reason)}")


def forget_end(before: Result, config: Experiment, last: int) -> None:
    """Take out of a result what it has of round ``last`` only because that was the last one: a longer run has not."""
    if last > 0 and last != config.rounds and last % config.evaluate.every:
        for name in before.rounds.keys() - COUNTED - {"round"}:
            before.rounds[name][last] = 0 if before.rounds[name].dtype.kind == "i" else np.nan
