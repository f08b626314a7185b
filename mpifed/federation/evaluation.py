"""What the record wants to know of every client at the server's model, and under which names it travels."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.federation.method import Personalised
from mpifed.federation.request import MAXIMA, WHOLE
from mpifed.federation.setup import Setup
from mpifed.federation.view import View

PERSONAL = ("personal_objective", "personal_accuracy")
COMMON = ("objective", "objective_samples", "gradient", "accuracy", "correct", "tested")


class Evaluated(NamedTuple):
    """Numbers of all clients together by name: those that are added up, and those of which the largest counts."""

    sums: dict[str, Array]
    maxima: dict[str, Array]


class Evaluation:
    """The quantities that are evaluated.

    ``objective`` f_i(x), ``objective_samples`` d_i f_i(x), ``gradient`` ∇f_i(x); for a problem with classes
    ``accuracy`` and the numbers of samples ``correct`` and ``tested``; for an algorithm with personal models
    ``personal_objective`` and ``personal_accuracy``; then what the problem has ``measured`` and the algorithm
    ``records``. ``views`` is what f has beside what client methods see of it.
    """

    def __init__(self, setup: Setup) -> None:
        self.algorithm = setup.algorithm
        self.personalised = self.algorithm.personalised if isinstance(self.algorithm, Personalised) else None
        self.classes = setup.problem.classifies()
        self.measured = setup.problem.measured()
        self.role = setup.role
        self.views: list[View] = []
        # what hosts may be asked for beside methods of the algorithm: name -> method(f, client, *args)
        self.looks: dict[str, Callable[..., dict[str, Array]]] = {WHOLE: self.evaluate, MAXIMA: self.maxima}
        self.names: tuple[str, ...] = ()  # of what is recorded, the same for all clients

    def over_samples(self) -> list[str]:
        """The recorded columns that are numbers over the samples on which models are evaluated."""
        classes = ["accuracy", "accuracy_pooled"] if self.classes else []
        personal = ["personal_accuracy"] if self.classes and self.personalised is not None else []
        return [*classes, *personal, *self.measured]

    def evaluate(self, f: Local, client: Any, x: Array) -> dict[str, Array]:
        """The quantities of each of the clients that are added up, at the server's model x (n,): (c,) each, the
        gradient (c, n); and the names of the others, with arrays without numbers.
        """
        # f is the same whatever a method computes with, but what the method records of itself is not
        whole = f.beside(self.views) if self.views else f
        value, gradient, *accuracy = whole.evaluate(x)
        samples = f.d * value
        if whole.views and whole.factors is not None:
            # a mean over samples has no weights of clients. Divided, for one pass over the samples is what takes time
            samples = samples / whole.factors
        sums = {"objective": value, "objective_samples": samples, "gradient": gradient}
        sums |= zip(("accuracy", "correct", "tested"), accuracy, strict=False)
        if self.personalised is not None:
            theta = self.personalised(whole, client)
            sums["personal_objective"] = whole.value(theta)
            if self.classes:
                sums["personal_accuracy"] = whole.accuracy(theta)[0]
        if self.measured:
            sums |= zip(self.measured, f.measure(x), strict=True)
        recorded = self.algorithm.record(f, client, x)
        added = {name: part for name, part in recorded.items() if part.added}
        sums |= {name: whole.scaled(part.values) if part.weighted else part.values for name, part in added.items()}
        maxima = [name for name, part in recorded.items() if not part.added]
        names = (*sums, *maxima)
        self.names = self.names or names
        if names != self.names:
            raise UserError(
                f"record of {self.algorithm.label()} returns {', '.join(names)} of some clients and "
                f"{', '.join(self.names)} of others: the names of what is recorded stay"
            )
        # a name without numbers tells rank 0 to ask for maxima, which are reduced in another way. It is part of the
        # layout of a reply, which ranks agree on once, so that no message is longer for it
        return sums | {name: f.zeros(0) for name in maxima}

    def maxima(self, f: Local, client: Any, x: Array) -> dict[str, Array]:
        """The recorded numbers of which the largest counts: (c,) each."""
        # recorded again, for the first reply has left: what has maxima records them from the state, without samples
        recorded = self.algorithm.record(f, client, x)
        return {name: part.values for name, part in recorded.items() if not part.added}

    def means(self, sums: dict[str, Array], m: int, samples: int) -> dict[str, float]:
        """The recorded columns, from the sums over all m clients, which together have so many training samples."""
        gradient = sums["gradient"] / m
        row = {
            "objective": float(sums["objective"]) / m,
            "objective_samples": float(sums["objective_samples"]) / samples,
            "grad_norm_sq": float(np.vecdot(gradient, gradient)),
        }
        evaluated = m - self.role.missing  # the others have added 0
        if self.classes:
            row["accuracy"] = float(sums["accuracy"]) / evaluated
            # the mean over clients counts each client once, this one each sample
            row["accuracy_pooled"] = float(sums["correct"]) / float(sums["tested"])
        means = [name for name in sums if name in self.measured or name in PERSONAL]
        return row | {name: float(sums[name]) / (m if name == PERSONAL[0] else evaluated) for name in means}

    def recorded(self, found: Evaluated) -> dict[str, float]:
        """What the algorithm records, of all clients together."""
        others = {*COMMON, *PERSONAL, *self.measured}
        own = {name: value for name, value in found.sums.items() if name not in others}
        return {name: float(value) for name, value in (own | found.maxima).items()}
