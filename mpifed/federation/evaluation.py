"""Evaluation of every client at the server's model, for the record."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.roles import TEST, VALIDATED, VALIDATION
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.federation.local import Local
from mpifed.federation.local_transform import LocalTransform
from mpifed.federation.method import HasPersonalModels
from mpifed.federation.request import EVALUATE_MAXIMA, EVALUATE_SUMS
from mpifed.federation.setup import RunSpec

ACCURACY = ("accuracy", "correct", "tested")
PERSONAL = ("personal_objective", "personal_accuracy")
TEST_LOSS = "test_objective"
COMMON = ("objective", "objective_samples", "gradient", *ACCURACY, TEST_LOSS)


class EvaluationResult(NamedTuple):
    """Evaluated numbers over all clients by name: sums, and maxima."""

    sums: dict[str, Array]
    maxima: dict[str, Array]


class Evaluation:
    """The quantities that are evaluated of each client.

    ``objective`` f_i(x), ``objective_samples`` d_i f_i(x), ``gradient`` ∇f_i(x); for a problem with classes
    ``accuracy`` and the numbers of samples ``correct`` and ``tested``; for an algorithm with personal models
    ``personal_objective`` and ``personal_accuracy``; then the problem's metrics and the numbers that ``record`` of the
    algorithm returns. With validation samples, numbers over samples also as validation_…, and ``test_objective``, f_i
    of test samples. ``local_transforms`` are those for evaluation only, beside those of client methods.
    """

    def __init__(self, setup: RunSpec) -> None:
        self.algorithm = setup.algorithm
        self.personal_models = self.algorithm.personal_models if isinstance(self.algorithm, HasPersonalModels) else None
        self.classes = setup.problem.classifies()
        self.measured = setup.problem.measure_names()
        self.by_client = bool(setup.problem.client_measures())
        self.role, self.validation = setup.role, setup.validation
        self.test_loss = setup.test_loss and self.role.name == TEST
        self.local_transforms: list[LocalTransform] = []
        # evaluations of the hosts themselves, beside methods of the algorithm: name -> method(f, client, *args)
        self.evaluators: dict[str, Callable[..., dict[str, Array]]] = {
            EVALUATE_SUMS: self.evaluate,
            EVALUATE_MAXIMA: self.maxima,
        }
        self.names: tuple[str, ...] = ()  # of recorded numbers, alike for all clients

    def sample_metrics(self) -> list[str]:
        """Return the names of recorded columns that are means over evaluation samples."""
        classes = ["accuracy", "accuracy_pooled"] if self.classes else []
        personal = ["personal_accuracy"] if self.classes and self.personal_models is not None else []
        loss = [TEST_LOSS] if self.test_loss else []
        return [*classes, *personal, *self.measured, *loss]

    def held_out(self, data: Dataset) -> list[str]:
        """Return the roles of samples beside those for training that are evaluated."""
        wanted = bool(self.validation or self.by_client or self.sample_metrics())
        return [*data.held_out()] if wanted else []

    def evaluate(self, f: Local, client: Any, x: Array) -> dict[str, Array]:
        """Evaluate the quantities to be summed of each client at the server's model x (n,), by name.

        Each is (c,), the gradient (c, n). Quantities whose maximum is recorded are empty arrays here.
        """
        # transforms for evaluation change f, but not the numbers that the method records of itself
        f_eval = f.with_transforms(self.local_transforms) if self.local_transforms else f
        sums = self._evaluate_server_model(f_eval, x)
        theta = None
        if self.personal_models is not None:
            theta = self.personal_models(f_eval, client)
            sums["personal_objective"] = f_eval.value(theta)
            if self.classes:
                sums["personal_accuracy"] = f_eval.accuracy(theta)[0]
        if self.measured:
            sums |= zip(self.measured, f.measure(x), strict=True)
        if self.validation is not None:
            sums |= self.validate(f_eval, theta, x)
        recorded = self.algorithm.record(f, client, x)
        added = {name: part for name, part in recorded.items() if part.is_sum}
        sums |= {
            name: f_eval.apply_factors(part.values) if part.weighted else part.values for name, part in added.items()
        }
        maxima = [name for name, part in recorded.items() if not part.is_sum]
        names = (*sums, *maxima)
        self.names = self.names or names
        if names != self.names:
            raise UserError(
                f"record of {self.algorithm.label()} returns {', '.join(names)} of some clients and "
                f"{', '.join(self.names)} of others: the names of what is recorded stay"
            )
        # an empty array tells rank 0 to request maxima, which take another reduction. The name is part of the layout,
        # which ranks exchange once, so no message is longer for it
        return sums | {name: f.zeros(0) for name in maxima}

    def _evaluate_server_model(self, f: Local, x: Array) -> dict[str, Array]:
        """Evaluate f and its gradient, and numbers over the samples on which models are evaluated: (c,) each."""
        losses = {}
        if self.test_loss:
            value, gradient = f.value_grad(x)
            losses[TEST_LOSS], *accuracy = f.assess(x, TEST)
        else:
            value, gradient, *accuracy = f.evaluate(x)
        samples = f.d * value
        if f.transforms and f.factors is not None:
            # a mean over samples has no weights of clients. They are divided out, because a second pass would cost more
            samples = samples / f.factors
        sums = {"objective": value, "objective_samples": samples, "gradient": gradient}
        return sums | dict(zip(ACCURACY, accuracy, strict=False)) | losses

    def validate(self, f: Local, theta: Array | None, x: Array) -> dict[str, Array]:
        """Evaluate the numbers over validation samples at x (n,), and at clients' own models ``theta``: (c,) each."""
        numbers = dict(zip(("objective", *ACCURACY), f.assess(x, VALIDATION), strict=False))
        if theta is not None and self.classes:
            numbers[PERSONAL[1]] = f.accuracy(theta, role=VALIDATION)[0]
        if self.measured:
            numbers |= zip(self.measured, f.measure(x, VALIDATION), strict=True)
        return {VALIDATED + name: values for name, values in numbers.items()}

    def maxima(self, f: Local, client: Any, x: Array) -> dict[str, Array]:
        """Return the numbers of each client whose maximum is recorded: (c,) each, by name."""
        # ``record`` is called again because the first reply has left; maxima come from the state and cost no samples
        recorded = self.algorithm.record(f, client, x)
        return {name: part.values for name, part in recorded.items() if not part.is_sum}

    def means(self, sums: dict[str, Array], m: int, samples: int) -> dict[str, float]:
        """Compute the recorded columns from the sums over all m clients and their number of training samples."""
        gradient = sums["gradient"] / m
        row = {
            "objective": float(sums["objective"]) / m,
            "objective_samples": float(sums["objective_samples"]) / samples,
            "grad_norm_sq": float(np.vecdot(gradient, gradient)),
        }
        if PERSONAL[0] in sums:
            row[PERSONAL[0]] = float(sums[PERSONAL[0]]) / m
        row |= self._sample_means(sums, m - self.role.missing, "")
        if self.validation is not None:
            row |= self._sample_means(sums, m - self.validation.missing, VALIDATED)
        return row

    def _sample_means(self, sums: dict[str, Array], m: int, prefix: str) -> dict[str, float]:
        """Compute the columns over samples whose sums begin with ``prefix``, of m clients that have such samples."""
        row = {}
        if self.classes:
            # ``accuracy`` weighs all clients alike, the second all samples; clients without samples have added 0
            row["accuracy"] = float(sums[prefix + "accuracy"]) / m
            row["accuracy_pooled"] = float(sums[prefix + "correct"]) / float(sums[prefix + "tested"])
        for name in (PERSONAL[1], *self.measured, "objective" if prefix else TEST_LOSS):
            if prefix + name in sums:
                row[name] = float(sums[prefix + name]) / m
        return {prefix + name: value for name, value in row.items()}

    def algorithm_columns(self, result: EvaluationResult) -> dict[str, float]:
        """Return the numbers that the algorithm records, over all clients, by column."""
        others = {*COMMON, *PERSONAL, *self.measured}
        names = [name for name in result.sums if name not in others and not name.startswith(VALIDATED)]
        sums = {name: result.sums[name] for name in names}
        return {name: float(value) for name, value in (sums | result.maxima).items()}
