"""Resuming a run: one that was stopped, was killed or failed, or a finished one that gets more rounds."""

import contextlib
import copy
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mpifed.core.errors import UserError, errors_about
from mpifed.core.files import is_being_written
from mpifed.core.roles import TEST, VALIDATED, Role
from mpifed.experiment import config as configuration
from mpifed.experiment.checkpoint import StoredCheckpoint, read_checkpoint
from mpifed.experiment.checkpoint_errors import missing_file_advice
from mpifed.experiment.stopping import StopJudge
from mpifed.features.settings import Experiment
from mpifed.features.stop import StopRules, ran_out
from mpifed.results.columns import COUNTED
from mpifed.results.netcdf import repair_length
from mpifed.results.result import RunRecord, load

# what may change when a run is resumed
FREE = ("rounds", "stop", "reduction", "block_bytes", "patience", "checkpoint")
Table = dict[str, Any]


def resume(path: str | os.PathLike[str], words: Sequence[str]) -> tuple[Table, StoredCheckpoint | None, RunRecord]:
    """Return the experiment with the overrides ``words``, the last checkpoint (None: start again) and the result.

    Raises UserError where the run is under way, cannot be continued or would have no round to go, where the file or the
    checkpoint cannot be read, and for an override that would make it another run.
    """
    name = os.fspath(path)
    if (mistake := missing_file_advice(path)) is not None:
        raise UserError(mistake)
    with contextlib.suppress(OSError):  # load says what is wrong
        if os.path.isfile(path) and is_being_written(Path(path)):
            raise UserError(f"{name} is being written by another run: resume it when that has ended; SIGTERM ends it")
        repair_length(path)
    before = load(path)
    saved = read_checkpoint(path)
    if before.status == "finished" and saved is None:
        raise UserError(no_checkpoint_error(before, name))
    if saved is not None and before.cr < saved.round:
        raise UserError(
            f"{name} has {before.cr} rounds and its checkpoint is of round {saved.round}: they do not belong together"
        )
    if saved is not None and before.m != saved.cuts[-1]:
        raise UserError(
            f"{name} has {before.m} clients and its checkpoint {saved.cuts[-1]}: they do not belong together"
        )
    with errors_about(name):
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
        refuse_other_choice(old, new, before, name)
        refuse_missing_columns(before, new, name)
        refuse_no_round(old, new, before, saved.round, name)
    return table, saved, before


def refuse_other_choice(old: Experiment, new: Experiment, before: RunRecord, name: str) -> None:
    """Raise UserError where the best model of the rounds so far was chosen by something else than stop.by."""
    if new.record.best and new.stop.by != old.stop.by:
        by = before.attrs.get("chosen_by")
        raise UserError(f"stop.by = {new.stop.by} is wrong: {name} has chosen its best model by {by} so far")


def refuse_longer_plan(old: Experiment, new: Experiment, name: str) -> None:
    """Raise UserError for more rounds than the noise of a privacy.epsilon was made for."""
    if new.privacy is not None and new.privacy.epsilon is not None and new.rounds > old.rounds:
        raise UserError(
            f"rounds = {new.rounds} is wrong: privacy.epsilon = {new.privacy.epsilon:g} was spent on the {old.rounds} "
            f"rounds of {name}; with privacy.noise_multiplier in its place a run can go on, and spends more"
        )


def refuse_missing_columns(before: RunRecord, new: Experiment, name: str) -> None:
    """Raise UserError where a result lacks a column that stop rules need."""
    required = ["objective", "grad_norm_sq", "elapsed_seconds"]
    if new.stop.patience:
        required.append(new.stop.column(f"{VALIDATED}objective" in before.rounds))
    if new.stop.simulated_seconds:
        required.append("simulated_seconds")
    for key in required:
        if key not in before.rounds:
            raise UserError(f"{name} has no column rounds/{key}, which resume needs")


def no_checkpoint_error(before: RunRecord, name: str) -> str:
    """Return why a finished run without a checkpoint cannot be continued, and the remedy."""
    if ran_out(before.stop_reason):
        return (
            f"{name} is finished ({before.stop_reason}) and the checkpoint to go on from, {name}.checkpoint, is not "
            "there: it was moved or removed, or not kept (checkpoint.keep = false), so run it again with more rounds"
        )
    return (
        f"{name} has converged ({before.stop_reason}) and such a run keeps no checkpoint: run it again with "
        f"{other_stop_rule(before.stop_reason)}, or with checkpoint.keep = true to go on later"
    )


def other_stop_rule(reason: str) -> str:
    """Return the stop rule to change for a run that ended, or would end at once, for this reason."""
    rule = reason.partition(":")[0]
    if rule not in StopRules.__struct_fields__:
        return "another stop rule"
    return f"another stop.{rule} ({'false' if rule == 'rising' else '0'} switches it off)"


def refuse_no_round(old: Experiment, new: Experiment, before: RunRecord, done: int, name: str) -> None:
    """Raise UserError where no round is left after ``done``; a run that was cut off may still have to be finished."""
    refuse_longer_plan(old, new, name)
    finished = before.status == "finished"
    if new.rounds < done or (new.rounds == done and (finished or new.rounds != old.rounds)):
        more = f"write a larger number to go on, such as rounds={max(2 * done, 1)}"
        if new.rounds == old.rounds:
            raise UserError(f"{name} is finished, with all of its {done} rounds: {more}")
        raise UserError(f"rounds = {new.rounds} is wrong: {name} has {done} rounds already, so {more}")
    history = {key: column[: done + 1 : new.evaluate.every].tolist() for key, column in before.rounds.items()}
    n = 0 if before.x is None else before.x.size
    role = Role(str(before.attrs.get("evaluated_on", TEST)))
    judge = StopJudge(new.stop, (before.m, n), role, f"{VALIDATED}objective" in before.rounds)
    if finished and (reason := judge.judge_all(history)) is not None:
        raise UserError(f"{name} would end at once ({reason}): to go on, write {other_stop_rule(reason)}")


def drop_last_evaluation(before: RunRecord, config: Experiment, last: int) -> None:
    """Remove the values of round ``last`` that exist only because it was the last one; a longer run has none."""
    if last > 0 and last != config.rounds and last % config.evaluate.every:
        for name in before.rounds.keys() - COUNTED - {"round"}:
            before.rounds[name][last] = 0 if before.rounds[name].dtype.kind == "i" else np.nan


def check_sizes(result: RunRecord, config: Experiment) -> None:
    """Raise UserError where generated data would have more clients or features than the run or its model had."""
    name = result.path or "the result"
    clients, features = (getattr(config.data, key, None) for key in ("clients", "features"))
    m = result.m
    if config.evaluate.unseen and result.status == "finished":
        m += len(result.unseen.get("data_client", ()))
    if isinstance(clients, int) and 0 < m < clients and (result.status == "finished" or not config.evaluate.unseen):
        raise UserError(f"data.clients = {clients} of {name} is wrong: its run has {m} clients")
    if not isinstance(features, int):
        return
    n = result.attrs.get("features", features)
    if config.problem.has("hess") and result.x is not None:
        n = min(n, result.x.size)  # a model has a parameter for each feature, or more
    if features > n:
        raise UserError(f"data.features = {features} of {name} is wrong: its run has {n} features")
