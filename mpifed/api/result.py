"""A result of a Python program: one line, a table and curves in a notebook, a summary, pictures."""

import dataclasses
import io
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from mpifed.api import html
from mpifed.api.study import build_table
from mpifed.core.errors import UserError, errors_about, escape_unprintable, first_message_line, raise_unknown
from mpifed.core.typing import Array
from mpifed.experiment.config import experiment
from mpifed.problems.problem import Problem
from mpifed.report import style
from mpifed.report.plot import plot_lines
from mpifed.report.summary import show
from mpifed.results import result as results
from mpifed.results.best import BestEvaluation, find_best
from mpifed.results.coefficients import Fit
from mpifed.results.columns import Columns
from mpifed.results.over_clients import summarise_clients

OPTIONS = ("log", "width", "title", "band", "rename", "all")


@runtime_checkable
class WithModule(Protocol):
    """A problem with a network of PyTorch."""

    def module_of(self, n: int, x: Array) -> Any: ...


def draw(
    results: Sequence[results.RunRecord],
    y: str | Sequence[str] | None,
    x: str,
    path: str | os.PathLike[str] | None = None,
    force: bool = False,
    **options: Any,
) -> Any:
    """Plot columns ``y`` against ``x``, also to ``path``; return a figure of matplotlib. See ``mpifed.plot``."""
    for name in options:
        if name not in OPTIONS:
            raise_unknown("option", name, OPTIONS)
    if "width" in options:
        options["width"] = style.parse_width(options["width"], "width =")
    options["everything"] = options.pop("all", False)
    names = options.get("rename")
    if isinstance(names, Mapping):
        options["rename"] = [f"{old}={new}" for old, new in names.items()]
    if y is not None:
        options["y"] = np.atleast_1d(y).tolist()
    if path is not None:
        style.picture_extension(os.fspath(path))
    figure = plot_lines(results, x, **options)
    if path is not None:
        style.save(figure, os.fspath(path), force)

    # a figure outside of pyplot has no picture for a notebook by itself
    def png() -> bytes:
        file = io.BytesIO()
        with style.matplotlib_style():
            figure.savefig(file, format="png", dpi=150)
        return file.getvalue()

    figure._repr_png_ = png
    return figure


class Result(results.RunRecord):
    """Everything that a run recorded, in memory.

    ``rounds`` name -> (rounds,), with ``round`` itself; ``about`` name -> unit and description of these columns;
    ``ranks`` and ``clients`` name -> (ranks,) and (m,); ``selection`` (rounds, slots) as stored, see ``selected``;
    ``x`` (n,) and ``personal`` (m, n) the final models, None where there are none; ``attrs`` the root attributes;
    ``path`` the file, None for a result in memory.

        >>> result: mpifed.Result = mpifed.run(rounds=2)
        >>> result.status, result.cr, result.rounds["objective"].shape, result.x.shape
        ('finished', 2, (3,), (100,))
    """

    held: Any = None  # arrays or a frame of a run in this program; fit reads them again

    @classmethod
    def of(cls, other: results.RunRecord) -> Self:
        """Convert a result of the room ``results`` to this class."""
        return cls(**{field.name: getattr(other, field.name) for field in dataclasses.fields(other)})

    def __repr__(self) -> str:
        return f"<Result of {escape_unprintable(headline(self))}>"

    def _repr_html_(self) -> str:
        return html.page(self, headline(self))

    def summary(self) -> str:
        """Return configuration, outcome, communication, times and ranks, as the command ``show`` prints them."""
        return escape_unprintable(show(self), "\n")

    def plot(self, y: str | Sequence[str] | None = None, x: str = "round", **options: Any) -> Any:
        """Plot the columns ``y`` against ``x`` and return the figure of matplotlib: see ``mpifed.plot``."""
        return draw([self], y, x, **options)

    @property
    def best(self) -> BestEvaluation:
        """The best evaluation by what the run chose by (``stop.by``): its round, numbers and, if stored, model.

        ``result.best.numbers["accuracy"]`` is the test accuracy of the model that validation samples choose.
        """
        return find_best(self)

    def over_clients(self, name: str = "accuracy", unseen: bool = False) -> Columns:
        """Return statistics over clients, in each evaluation of them: ``result.over_clients("auc")["worst_tenth"]``.

        ``round`` (k,) and, (k,) each: ``mean``; ``worst_tenth``, the mean over a tenth of the clients with the worst,
        rounded up; ``sd`` with their number as divisor; ``iqr``, ``min``, ``max``; ``missing``, how many have none.
        ``unseen``: over the clients that never train. UserError for a number that the result does not have.
        """
        return summarise_clients(self.unseen if unseen else self.by_client, name)

    def fit(self, data: Any = None) -> Fit:
        """Return coefficients with standard errors at the final model, as the command ``fit`` prints them.

        The samples of the run are read again; ``data`` says where they are if they have moved:
        ``mpifed.load("out.h5").fit(data=mpifed.arrays(X, y, clients))``, or ``fit(data={"path": "new.csv"})``. Raises
        UserError where the problem has no Hessian or it is singular at this model, and for other data.
        """
        from mpifed.statistics.fitted import fit_model, require_same_data  # it imports scipy.stats, which takes time

        with errors_about(self.path or ""):
            config = experiment(build_table(self.config, {} if data is None else {"data": data}, {}))
            return fit_model(self, require_same_data(self, config))

    def module(self, client: int | None = None) -> Any:
        """Return the torch.nn.Module of the run with the final model, or with the personal model of ``client``.

        Frozen parameters and buffers are those of the run, and so is the precision: ``torch.save(result.module()
        .state_dict(), "model.pt")``. Batch normalisation that was trained has no running statistics, as in the run.
        Raises UserError for a problem that is no network of PyTorch, and where the file has no such model.
        """
        problem = Problem.build(self.config["problem"], "problem")
        if not isinstance(problem, WithModule):
            raise UserError(
                f"module() is for networks of PyTorch, the problems torch and cnn: the model of {problem.label()} is "
                "the array x of the result"
            )
        x = self.x if client is None else self._personal(client)
        if x is None:
            raise UserError(f"the result has no final model, for its status is {self.status}")
        try:
            return problem.module_of(int(self.attrs.get("features", 0)), x)
        except (RuntimeError, ValueError) as error:
            mistake = f"the model of {self.path or 'the result'} is none of its problem, {problem.label()}"
            raise UserError(f"{mistake}: {first_message_line(error)}") from error

    def _personal(self, client: int) -> Any:
        """Return the personal model (n,) of a client. UserError where there is none."""
        if self.personal is None:
            raise UserError(
                "the result has no personal models: a method that has some stores them with record.personal = true"
            )
        if not 0 <= client < self.m:
            raise UserError(f"client = {client} is wrong: there are the clients 0 to {self.m - 1}")
        return self.personal[client]


def headline(result: results.RunRecord) -> str:
    """Return a line such as: fedgia on softmax / digits, 50 clients: finished after 30 rounds, f 0.42."""
    config = result.config
    names = (config.get(key, {}).get("name", "?") for key in ("algorithm", "problem", "data"))
    name, problem, data = (name.rpartition(":")[2] for name in names)  # my_methods.py:MyMethod
    f = [value for value in result.rounds.get("objective", np.zeros(0)).tolist() if math.isfinite(value)]
    value = f", f {f[-1]:.4g}" if f else ""
    return f"{name} on {problem} / {data}, {result.m} clients: {result.status} after {result.cr} rounds{value}"


def load(path: str | os.PathLike[str]) -> Result:
    """Read a result file, finished or still being written: ``mpifed.load("out.h5")``. UserError where it is none."""
    return Result.of(results.load(path))
