"""What attackers make of their own uploads, and of their labels."""

from typing import Any

import numpy as np

from mpifed.compressors.compressor import Generators
from mpifed.core.typing import Array, Matrix
from mpifed.data.dataset import Dataset, Wrapped
from mpifed.features.attack.attacks import BITS_AND_RESUME, Attack
from mpifed.features.attack.changes import origin, uploads, vectors
from mpifed.federation.request import Request
from mpifed.federation.setup import Setup
from mpifed.federation.stage import HostStage, Postage, ServerStage, Visit

ATTACK = "attack"


class ServerAttack(ServerStage):
    """The server's side: it names the requests whose replies pass attackers."""

    # It changes nothing.
    keeps = BITS_AND_RESUME

    def down(self, request: Request, postage: Postage) -> None:
        if uploads(request):
            request.stages = {ATTACK: None, **request.stages}


class HostAttack(HostStage):
    """The side of the clients, of which those of ``bad`` (m,) send something else."""

    # What a client sends depends on its own upload and stream alone.
    keeps = BITS_AND_RESUME

    def __init__(self, setup: Setup, attack: Attack, bad: Array) -> None:
        self.setup = setup
        self.attack = attack
        self.bad = bad

    def up(self, request: Request, visit: Visit, new: Any, reply: Any) -> tuple[Any, Any]:
        bad = np.flatnonzero(self.bad[visit.f.ids])
        if reply is None or not len(bad):
            return new, reply
        x = origin(request, self.setup)
        sent = vectors(reply, request, self.setup).copy()
        sent[bad] = x + self.attack.alone(sent[bad] - x, lambda: self.draws(visit, bad))
        return new, sent

    def draws(self, visit: Visit, bad: Array) -> Generators:
        """A generator for each of the attackers, which stand at the positions ``bad``."""
        every = visit.f.streams(self.setup.seed, "attack")
        return [every[k] for k in bad]


class Relabelled(Wrapped):
    """The data set ``whole``, in which clients of ``bad`` (m,) have other training labels.

    ``total``: the sum of the least and the largest label, where they are classes, or 0.
    """

    def __init__(self, whole: Dataset, attack: Attack, bad: Array, total: float) -> None:
        super().__init__(whole)
        self.attack = attack
        self.bad = bad
        self.total = total

    def part(self, lo: int, hi: int, test: bool) -> tuple[Matrix, Array]:
        X, y = super().part(lo, hi, test)
        if test or not self.bad[lo:hi].any():
            return X, y
        theirs = np.repeat(self.bad[lo:hi], np.asarray(self.sizes)[lo:hi])
        y = y.copy()
        y[theirs] = self.attack.changed(y[theirs], self.total)
        return X, y
