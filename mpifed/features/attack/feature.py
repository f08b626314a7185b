"""Feature of clients that attack, and its transform: the table [attack]."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from mpifed.compressors.compressor import Generators
from mpifed.core.errors import UserError
from mpifed.core.roles import TRAINING
from mpifed.core.typing import Array, SampleMatrix
from mpifed.data.dataset import Dataset, DatasetWrapper
from mpifed.features.attack.attacks import BITS_AND_RESUME, Attack
from mpifed.features.attack.changes import brings_uploads, check_vectors, find_origin
from mpifed.features.feature import Plugin
from mpifed.features.message_conflicts import MESSAGES
from mpifed.federation.callback import Callback
from mpifed.federation.request import Request
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec
from mpifed.federation.transform import ClientBatch, MessageCost, Transform


class ChangedUploads(Transform):
    """Transform of uploads: clients of ``bad`` (m,) send something else."""

    # What a client sends depends on its own upload and stream alone.
    supports = BITS_AND_RESUME
    name = "attack"

    def __init__(self, setup: RunSpec, attack: Attack, bad: Array) -> None:
        self.setup = setup
        self.attack = attack
        self.bad = bad

    def begin(self, request: Request, cost: MessageCost) -> None:
        if brings_uploads(request):
            self.mark(request, first=True)

    def encode(self, request: Request, batch: ClientBatch, new: Any, upload: Any) -> tuple[Any, Any]:
        bad = np.flatnonzero(self.bad[batch.f.ids])
        if upload is None or not len(bad):
            return new, upload
        x = find_origin(request, self.setup)
        sent = check_vectors(upload, request, self.setup).copy()
        sent[bad] = x + self.attack.alone(sent[bad] - x, lambda: self.draws(batch, bad))
        return new, sent

    def draws(self, batch: ClientBatch, bad: Array) -> Generators:
        """Return a generator for each of the attackers, at the positions ``bad`` of a batch."""
        every = batch.f.streams(self.setup.seed, "attack")
        return [every[k] for k in bad]


class Relabelled(DatasetWrapper):
    """Data set in which clients of ``bad`` (m,) have other training labels.

    ``total``: the sum of the least and the largest class, or 0 where labels are numbers.
    """

    def __init__(self, data: Dataset, attack: Attack, bad: Array, total: float) -> None:
        super().__init__(data)
        self.attack = attack
        self.bad = bad
        self.total = total

    def read_clients(self, lo: int, hi: int, role: str) -> tuple[SampleMatrix, Array]:
        X, y = super().read_clients(lo, hi, role)
        if role != TRAINING or not self.bad[lo:hi].any():
            return X, y
        of_attackers = np.repeat(self.bad[lo:hi], np.asarray(self.sizes)[lo:hi])
        y = y.copy()
        y[of_attackers] = self.attack.change_labels(y[of_attackers], self.total)
        return X, y


class ClientAttacks(Plugin, Callback):
    """Clients that send, or train on, something else than they should."""

    # As the attacks themselves, which say so too.
    supports = BITS_AND_RESUME
    unsupported = Attack.unsupported
    conflicts = MESSAGES["attack"]

    bad: Array  # (m,) bool: who attacks

    @property
    def attack(self) -> Attack:
        assert self.config.attack is not None
        return self.config.attack

    def data(self, data: Dataset) -> Dataset:
        self.bad = self.attack.attackers(data.m, self.config.seed)
        if not self.attack.on_labels:
            return data
        relabelled = Relabelled(data, self.attack, self.bad, sum_extremes(data, self.config.problem.takes()))
        self.refuse_labels(relabelled)
        return relabelled

    def refuse_labels(self, data: Relabelled) -> None:
        """Raise UserError where the problem does not take the attackers' labels, though the true ones are right."""
        if not self.bad.any():
            return
        i = int(self.bad.argmax())
        values = data.values()  # labels of all samples, where a data set tells them
        y = data.rows(i, i + 1)[1] if values is None else self.attack.change_labels(values, data.total)
        try:
            self.config.problem.labels(y)
        except ValueError as error:
            raise UserError(
                f'attack = "labels" is wrong: attackers would have labels with the other sign, and those of '
                f'{self.config.problem.label()} may not be so: {error}; attack = "sign-flip" changes what they send'
            ) from None

    def notes(self) -> Iterator[str]:
        count = int(self.bad.sum())
        name = self.attack.label()
        yield f"{count} of {len(self.bad)} clients attack: {name}" if count else f"no client attacks: {name}"
        if count and self.attack.on_labels:
            yield "f and its gradient are those of the changed labels; test samples have their own"

    def transforms(self, setup: RunSpec, fed: Federation | None) -> list[ChangedUploads]:
        if self.attack.on_labels or self.attack.jointly:
            return []
        return [ChangedUploads(setup, self.attack, self.bad)]


def sum_extremes(data: Dataset, label_type: str) -> float:
    """Return the sum of the least and the largest label, or 0 where the problem takes numbers."""
    if label_type == "numbers":
        return 0.0
    if data.classes:
        return data.classes - 1.0
    values = data.values()
    if values is None:
        raise UserError('attack = "labels" is wrong: which classes there are is not known before all samples are read')
    return float(np.min(values) + np.max(values))
