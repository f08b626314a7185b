"""What the record wants to know of every client at the server's model, and under which names it travels."""

from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.federation.method import Personalised
from mpifed.federation.scaled_local import ScaledLocal
from mpifed.federation.setup import Setup
from mpifed.federation.traits import Max, Recorded, Sum

COMMON = ("objective", "objective_samples", "gradient", "accuracy", "correct", "tested")
PERSONAL = ("personal_objective", "personal_accuracy")


class Evaluation:
    """The quantities that are evaluated.

    ``objective`` f_i(x), ``objective_samples`` d_i f_i(x), ``gradient`` ∇f_i(x); for a problem with classes
    ``accuracy`` and the numbers of samples ``correct`` and ``tested``; for an algorithm with personal models
    ``personal_objective`` and ``personal_accuracy``; then what the problem has ``measured`` and the algorithm
    ``records``; a number of which the largest counts stands among the sums as an array without numbers.
    """

    def __init__(self, setup: Setup) -> None:
        self.algorithm = setup.algorithm
        self.record = self.algorithm.record
        self.personalised = self.algorithm.personalised if isinstance(self.algorithm, Personalised) else None
        self.classes = setup.problem.classifies()
        self.measured = setup.problem.measured()
        self.names: tuple[str, ...] = ()  # of what is recorded, the same for all clients

    def clients(self, f: Local, client: Any, x: Array) -> dict[str, Array]:
        """The quantities of each of the clients at the server's model x (n,): (c,) each, the gradient (c, n)."""
        value, gradient, *accuracy = f.evaluate(x)
        found = {"objective": value, "objective_samples": f.d * value, "gradient": gradient}
        found |= zip(("accuracy", "correct", "tested"), accuracy, strict=False)
        if self.personalised is not None:
            theta = self.personalised(f, client)
            found["personal_objective"] = f.value(theta)
            if self.classes:
                found["personal_accuracy"] = f.accuracy(theta)[0]
        if self.measured:
            found |= zip(self.measured, f.measure(x), strict=True)
        for name, part in self.record(f, client, x).items():
            found[name] = part.values if isinstance(part, Sum) else f.zeros(0)
        self.names = self.names or tuple(found)
        if tuple(found) != self.names:
            raise UserError(
                f"record of {self.algorithm.label()} returns {', '.join(found)} of some clients and "
                f"{', '.join(self.names)} of others: the names of what is recorded stay"
            )
        return found

    def maxima(self, f: Local, client: Any, x: Array) -> dict[str, Array]:
        """The recorded numbers of which the largest counts: (c,) each."""
        recorded = self.record(f, client, x)
        return {name: part.values for name, part in recorded.items() if isinstance(part, Max)}

    def means(self, sums: dict[str, Array], m: int, samples: int) -> dict[str, float]:
        """The recorded columns, from the sums over all m clients, which together have so many samples."""
        gradient = sums["gradient"] / m
        row = {
            "objective": float(sums["objective"]) / m,
            "objective_samples": float(sums["objective_samples"]) / samples,
            "grad_norm_sq": float(np.vecdot(gradient, gradient)),
        }
        if self.classes:
            row["accuracy"] = float(sums["accuracy"]) / m
            row["accuracy_pooled"] = float(sums["correct"]) / float(sums["tested"])
        means = [name for name in sums if name in self.measured or name in PERSONAL]
        return row | {name: float(sums[name]) / m for name in means}

    def recorded(self, sums: dict[str, Array]) -> dict[str, float]:
        """What the algorithm records, of all clients together."""
        others = {*COMMON, *PERSONAL, *self.measured}
        return {name: float(value) for name, value in sums.items() if name not in others}


class WeightedEvaluation(Evaluation):
    """f and its gradient with weights of clients; what a method records of itself is what it computes with."""

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.setup = setup
        self.record = self.recorded_with

    def clients(self, f: Local, client: Any, x: Array) -> dict[str, Array]:
        scaled = ScaledLocal(f.block, self.setup, f.ids, (f.round, 0))
        found = super().clients(scaled, client, x)
        found["objective_samples"] = found["objective_samples"] / scaled.factors
        return found

    def recorded_with(self, f: Local, client: Any, x: Array) -> Recorded:
        """What the algorithm records, of clients as its methods meet them."""
        return self.algorithm.record(self.setup.local(f.block, self.setup, f.ids, (f.round, 0)), client, x)


def evaluation_of(setup: Setup) -> Evaluation:
    """What is evaluated in a run."""
    return Evaluation(setup) if setup.factors is None else WeightedEvaluation(setup)
