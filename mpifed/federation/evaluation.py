"""What the record wants to know of every client at the server's model, and under which names it travels."""

from __future__ import annotations

from typing import Any

import numpy as np

from mpifed.core.typing import Array
from mpifed.federation.local import Local
from mpifed.federation.setup import Setup


class Evaluation:
    """The quantities that are evaluated: ``names``, in the order in which ``clients`` computes them.

    ``objective`` f_i(x), ``objective_samples`` d_i f_i(x), ``gradient`` ∇f_i(x); for a problem with classes
    ``accuracy`` and the numbers of samples ``correct`` and ``tested``; for an algorithm with personal models
    ``personal_objective`` and ``personal_accuracy``; then what the problem has ``measured`` and the algorithm
    ``watches``.
    """

    def __init__(self, setup: Setup) -> None:
        self.algorithm = setup.algorithm
        self.classes, self.personal = setup.problem.classifies(), self.algorithm.personal
        self.measured = setup.problem.measured()
        names = ["objective", "objective_samples", "gradient"]
        names += ["accuracy", "correct", "tested"] * self.classes
        names += ["personal_objective"] * self.personal + ["personal_accuracy"] * (self.personal and self.classes)
        self.names = (*names, *self.measured, *self.algorithm.watches)

    def clients(self, f: Local, client: Any, x: Array) -> tuple[Array, ...]:
        """The quantities of each of the clients at the server's model x (n,): (c,) each, the gradient (c, n)."""
        value, gradient, *accuracy = f.evaluate(x)
        personal: tuple[Array, ...] = ()
        if self.personal:
            theta = self.algorithm.personalised(f, client)
            personal = (f.value(theta), *([f.accuracy(theta)[0]] if self.classes else []))
        measures = f.measure(x) if self.measured else ()
        return value, f.d * value, gradient, *accuracy, *personal, *measures, *self.algorithm.watch(f, client, x)

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
        return row | {
            name: float(sums[name]) / m for name in self.names if name in self.measured or name.startswith("personal_")
        }
