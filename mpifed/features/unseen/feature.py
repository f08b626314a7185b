"""Clients that never train: what goes with evaluate.unseen, evaluate.unseen_steps and evaluate.unseen_step."""

from functools import partial
from typing import Any

import numpy as np

from mpifed.core.errors import RunError
from mpifed.core.promises import Keeps
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.features.by_client.client_numbers import asked_for, with_lacking
from mpifed.features.feature import ByClient, Feature, Housing, Looks, MakeHost
from mpifed.features.guarantee.prepared_data import shared
from mpifed.features.network_training.feature import training_views
from mpifed.features.rule import Found, Rule
from mpifed.features.settings import Evaluate, Experiment
from mpifed.features.unseen.newcomers import TESTED, Beside, Trying
from mpifed.features.unseen.parted import Newcomers, parted
from mpifed.federation.host import Host
from mpifed.federation.server import Federation
from mpifed.federation.setup import Setup
from mpifed.federation.traits import steering


def idle(c: Experiment) -> Found:
    """The first key that is about clients that never train, where there are none."""
    if c.evaluate.unseen:
        return None
    keys = [key for key in ("unseen_steps", "unseen_step") if getattr(c.evaluate, key) != getattr(Evaluate(), key)]
    return {"key": keys[0]} if keys else None


RULES: list[Rule[Experiment]] = [
    Rule(idle, "evaluate.{key} has no effect without evaluate.unseen: leave it out"),
    Rule(
        lambda c: c.evaluate.unseen and c.evaluate.unseen_step is None and not c.problem.has("lipschitz"),
        "evaluate.unseen_step is missing: {loss} tells no Lipschitz constants r_i, so the steps of clients that never "
        "train need a size, such as evaluate.unseen_step = 0.1",
    ),
    Rule(
        lambda c: c.evaluate.unseen and getattr(c.data, "standardise", None) == "federated",
        'data.standardise = "federated" is wrong with evaluate.unseen: sums would travel from clients that never take '
        'part, so it must be "own"',
    ),
]


class Unseen(Feature):
    """Clients that never train and are only evaluated."""

    # They send nothing to the rounds, and what is tested is for the record alone, which a note says.
    keeps = Keeps.EVERYTHING

    rules = RULES
    newcomers: Newcomers

    def data(self, data: Dataset) -> Dataset:
        if not self.config.evaluate.unseen:
            return data
        train, self.newcomers = parted(data, self.config.evaluate.unseen, self.config.seed)
        train.notes += shared(self.config)
        return train

    def host(self, host: Host, housing: Housing) -> None:
        """A share of the clients that never train; these have numbers above those of all others."""
        data, first, _ = self.newcomers
        count = data.m - first
        lo, hi = housing.part(host, count)
        own = None if lo == hi else self.own(host.setup, housing.make, first + lo, first + hi)
        host.services[TESTED] = Beside(host, own, lo, count).tested

    def own(self, setup: Setup, make: MakeHost, lo: int, hi: int) -> Host:
        """The host of these clients, which keep nothing."""
        c, data = self.config, self.newcomers.data
        made = make(setup._replace(m=data.m, role=self.newcomers.role), data, (lo, hi), hi - lo)
        # they have no weights and no neighbours, but take steps as the others do
        made.views += training_views(c)
        names = asked_for(c.problem, c.evaluate.clients or True)
        trying = Trying(setup.algorithm, names, c.evaluate.unseen_steps, c.evaluate.unseen_step)
        made.algorithm = trying
        made.evaluation.looks[TESTED] = trying.tested
        made.join()
        return made

    def looks(self, fed: Federation) -> Looks:
        return {"unseen": partial(self.look, fed)}

    def look(self, fed: Federation, x: Array) -> ByClient:
        """Their numbers at the server's model x (n,). RunError where their steps diverge."""
        rows: ByClient = fed.ask(TESTED, "plain sum", (x,))
        check = rows.pop("check")
        bad = np.flatnonzero(~np.isfinite(check))
        if fed.unfailing:
            rows = {name: values + check for name, values in rows.items()}  # NaN where a model is not finite
        elif len(bad):
            client = self.newcomers.ids[self.newcomers.first + bad[0]]
            raise RunError(
                f"the model of client {client}, which never trains, is not finite after steps of its own in round "
                f"{fed.round}: look at evaluate.unseen_step and, where the method trains it, "
                f"{steering(self.config.algorithm)}"
            )
        return with_lacking(rows)

    def attributes(self, redrawn: int) -> dict[str, Any]:
        return {"unseen_evaluated_on": self.newcomers.role.name}

    def clients(self, tables: dict[str, ByClient]) -> dict[str, ByClient]:
        """Both tables with the clients of the data."""
        data, first, ids = self.newcomers
        own = {"data_client": ids[first:], "samples": data.sizes[first:]}
        return tables | {"clients": tables["clients"] | {"data_client": ids[:first]}, "unseen": own}
