"""The best evaluation of a run: its round, and the model that it is of."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.promises import Supports
from mpifed.core.roles import TEST, VALIDATED
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.features.conflicts import CONFLICTS
from mpifed.features.feature import Plugin
from mpifed.federation.callback import Callback
from mpifed.federation.evaluation import Evaluation
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec
from mpifed.results.columns import COLUMNS


class BestModel(Plugin, Callback):
    """The best evaluation by the column that stop.by names, with record.best also its model."""

    # As record.models: it is of the true data, and a note says that models alone may be published.
    supports = Supports.EVERYTHING
    conflicts = CONFLICTS["best_model"]

    column = "objective"
    by_test = False

    def prepare(self, setup: RunSpec, data: Dataset) -> RunSpec:
        self.column = self.config.stop.column(setup.validation is not None)
        metrics = Evaluation(setup).sample_metrics()
        validated = [] if setup.validation is None else [VALIDATED + name for name in ("objective", *metrics)]
        known = dict.fromkeys(("objective", "objective_samples", "grad_norm_sq", *metrics, *validated))
        if self.column not in known or not COLUMNS[self.column].better:
            raise UserError(
                f"stop.by = {toml_value(self.config.stop.by)} is wrong: it must be validation, test or a column that "
                f"this run evaluates, {', '.join(known)}"
            )
        self.by_test = self.column in metrics and setup.role.name == TEST
        return setup

    def notes(self) -> Iterable[str]:
        if self.by_test:
            yield (
                f"the best round is chosen by {self.column}, of test samples: numbers of these samples in that round "
                "are better than those of new ones"
            )

    def attributes(self, replayed: int) -> dict[str, Any]:
        return {"chosen_by": self.column}

    def after_evaluation(self, fed: Federation, x: Array, row: Mapping[str, float]) -> None:
        value = COLUMNS[self.column].better * row[self.column]
        if "value" not in self.best or value > self.best["value"]:
            self.best = {"value": np.array(value), "round": np.array(fed.round), "x": np.array(x)}
            # a run that goes on forgets an evaluation that was made because it ended there
            if fed.round % self.config.evaluate.every == 0:
                self.state.update(self.best)

    @cached_property
    def best(self) -> dict[str, Array]:
        """The best evaluation so far, from a checkpoint where the run goes on; of a last round off the grid too."""
        return dict(self.state)

    def on_end(self, fed: Federation, x: Array) -> dict[str, Any]:
        model = self.best["x"] if self.config.record.best else None
        return {"best": (int(self.best["round"]), model)}
