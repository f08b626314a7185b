"""Clients that attack: what goes with the table [attack]."""

from collections.abc import Iterator

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.features.attack.attacks import BITS_AND_RESUME, Attack
from mpifed.features.attack.stages import ATTACK, HostAttack, Relabelled, ServerAttack
from mpifed.features.feature import Feature, Housing
from mpifed.features.robust.one_mean import refusal
from mpifed.features.rule import Found, Rule
from mpifed.features.settings import Experiment
from mpifed.federation.host import Host
from mpifed.federation.server import Federation


def wrong(c: Experiment) -> Found:
    """Why clients cannot attack, where it is by their uploads."""
    return refusal(c) if c.attack is not None and not c.attack.on_labels else None


RULES: list[Rule[Experiment]] = [
    Rule(wrong, 'attack = "{attack_name}" is wrong: {why}'),
    Rule(
        lambda c: c.attack and c.attack.on_labels and c.problem.takes() == "survival",
        'attack = "labels" is wrong: {loss} takes times with a mark of censoring, which have no opposite',
    ),
]


class Attacked(Feature):
    """Clients that send, or learn from, something else than they should."""

    # As the attacks themselves, which say so too.
    keeps = BITS_AND_RESUME
    unkept = Attack.unkept

    rules = RULES
    bad: Array  # (m,) bool: who attacks

    @property
    def attack(self) -> Attack:
        assert self.config.attack is not None
        return self.config.attack

    def data(self, data: Dataset) -> Dataset:
        self.bad = self.attack.attackers(data.m, self.config.seed)
        if not self.attack.on_labels:
            return data
        changed = Relabelled(data, self.attack, self.bad, total(data, self.config.problem.takes()))
        self.refuse_labels(changed)
        return changed

    def refuse_labels(self, data: Relabelled) -> None:
        """UserError where the problem takes no labels like those of attackers: a file with the true ones is right."""
        if not self.bad.any():
            return
        i = int(self.bad.argmax())
        known = data.values()  # of all samples, where a data set tells them
        y = data.rows(i, i + 1)[1] if known is None else self.attack.changed(known, data.total)
        try:
            self.config.problem.labels(y)
        except ValueError as error:
            raise UserError(
                f'attack = "labels" is wrong: attackers would have labels with the other sign, and those of '
                f'{self.config.problem.label()} may not be so: {error}; attack = "sign-flip" changes what they send'
            ) from None

    def notes(self) -> Iterator[str]:
        count = int(self.bad.sum())
        kind = self.attack.label()
        yield f"{count} of {len(self.bad)} clients attack: {kind}" if count else f"no client attacks: {kind}"
        if count and self.attack.on_labels:
            yield "f and its gradient are those of the changed labels; test samples have their own"

    def server(self, fed: Federation) -> None:
        if not (self.attack.on_labels or self.attack.jointly):
            fed.stages.append(ServerAttack())

    def host(self, host: Host, housing: Housing) -> None:
        host.add_stage(ATTACK, HostAttack(host.setup, self.attack, self.bad))


def total(data: Dataset, kind: str) -> float:
    """The sum of the least and the largest label of a problem that takes labels of this kind; 0 where it is none."""
    if kind == "numbers":
        return 0.0
    if data.classes:
        return data.classes - 1.0
    values = data.values()
    if values is None:
        raise UserError('attack = "labels" is wrong: which classes there are is not known before all samples are read')
    return float(np.min(values) + np.max(values))
