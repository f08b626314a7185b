"""Conditions of conflicts in plain words, which plug-ins ask too: each returns what it found in the settings."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from mpifed.compressors.compressor import Compressor, Identity
from mpifed.core.toml import toml_value
from mpifed.features.settings import Experiment
from mpifed.features.simulated_time.system import System
from mpifed.federation.traits import MeanEstimate, Participation, Unsupported

Violation = Mapping[str, Any] | None  # words of a sentence, where settings conflict
ONE = np.ones(1)  # one client with one sample, to ask whether a method states its work


def find_selection_key(c: Experiment) -> Violation:
    """Return the first key of [selection] that is set, and its value; None also where all clients are selected."""
    for key in c.changed_keys():
        table, _, option = key.partition(".")
        if table == "selection" and c.selection.label() != "all":
            return {"key": key, "value": toml_value(getattr(c.selection, option) if option else c.selection.label())}
    return None


def mean_bias(c: Experiment) -> MeanEstimate | Unsupported:
    """Return the bias of a mean over the selected; UNBIASED too where all clients reply or last uploads count."""
    always = c.algorithm.participation in (Participation.ALL, Participation.SELECTED_AND_ALL)
    return MeanEstimate.UNBIASED if always or last_upload_field(c) else c.algorithm.mean_estimate


def last_upload_field(c: Experiment) -> str:
    """Return the field with clients' last uploads if rounds use those of all clients, else ""."""
    return c.algorithm.upload.last(c.algorithm)


def minibatch_size(c: Experiment) -> int:
    """Return the size of the mini-batches of a method or of its solver; 0: gradients are over all samples."""
    return max(int(getattr(part, "batch_size", 0)) for part in (c.algorithm, getattr(c.algorithm, "solver", None)))


def guarantees_privacy(c: Experiment) -> bool:
    """Return whether uploads have a guarantee of privacy."""
    privacy = c.guarantee()
    return privacy is not None and privacy.holds


def compressors(c: Experiment) -> dict[str, Compressor]:
    """Return the compressors of a study by direction: up, down."""
    return {} if c.compress is None else c.compress.by_direction()


def find_lossy(c: Experiment, way: str) -> Violation:
    """Return the compressor of one direction, up or down, if it changes messages; else None."""
    C = compressors(c).get(way)
    return None if C is None or isinstance(C, Identity) else {"way": way, "C": C.label()}


def synchronous_system(c: Experiment) -> System | None:
    """Return the table [system] if a server waits for replies in every round, else None."""
    return c.system if c.graph is None and c.asynchronous is None else None


def may_be_absent(c: Experiment) -> bool:
    """Return whether clients may be absent."""
    return c.system is not None and c.graph is None and c.system.absence() is not None


def may_shorten(c: Experiment) -> bool:
    """Return whether clients may take fewer local steps."""
    system = synchronous_system(c)
    return system is not None and system.partial


def has_weights(c: Experiment) -> bool:
    """Return whether clients have weights of their own in the objective."""
    return c.objective.weights != "clients"
