"""What is refused once data are loaded, before round one."""

from mpifed.core.errors import UserError
from mpifed.experiment.checkpoint import Saved
from mpifed.features.settings import Experiment
from mpifed.federation.participation.selection import Selector
from mpifed.problems.base import Problem
from mpifed.results.columns import COLUMNS, MEASURES, SCALES


def refuse_data(problem: Problem, m: int, ranks: int) -> None:
    """UserError for a metric under the name of a column that is none of measures, and for more ranks than clients."""
    for name in problem.measured():
        if name in {*COLUMNS, *SCALES} - {*MEASURES}:
            raise UserError(
                f"the metric {name} of the problem is wrong: there is a column {name}, so rename the function"
            )
    if ranks > m + 1:
        raise UserError(
            f"{ranks} ranks are too many for {m} clients: start at most {m + 1}, one for the server "
            "and one for each client"
        )


def refuse_other_data(saved: Saved | None, m: int) -> None:
    """UserError where a checkpoint has another number of clients than there are."""
    if saved is not None and saved.cuts[-1] != m:
        raise UserError(f"the data have changed: the checkpoint has {saved.cuts[-1]} clients, and now there are {m}")


def refuse_second_selection(config: Experiment, selector: Selector) -> None:
    """UserError where a method selects twice a round, and a recorded selection has nothing for the second time."""
    selections = config.algorithm.takes.selections
    if config.rounds and selections and selector.learn is None:
        selector.select(1, selections - 1)
