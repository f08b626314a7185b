"""A result as a Python program meets it: one line, a table and curves in a notebook, a summary, pictures."""

import dataclasses
import io
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from mpifed.api import html
from mpifed.api.study import study
from mpifed.core.errors import UserError, concerning, printable, unknown
from mpifed.core.guards import message
from mpifed.core.typing import Array
from mpifed.experiment.config import experiment
from mpifed.problems.problem import Problem
from mpifed.report import style
from mpifed.report.plot import lines
from mpifed.report.summary import show
from mpifed.results import result as results
from mpifed.results.coefficients import Fit
from mpifed.results.columns import Columns
from mpifed.results.over_clients import over_clients

OPTIONS = ("log", "width", "title", "band", "rename", "all")


@runtime_checkable
class WithModule(Protocol):
    """A problem with a network of PyTorch."""

    def module_of(self, n: int, x: Array) -> Any: ...


def draw(
    results: Sequence[results.Result],
    y: str | Sequence[str] | None,
    x: str,
    path: str | os.PathLike[str] | None = None,
    force: bool = False,
    **options: Any,
) -> Any:
    """Columns ``y`` against ``x`` as a figure of matplotlib, also written to ``path``; see ``mpifed.plot``."""
    for name in options:
        if name not in OPTIONS:
            unknown("option", name, OPTIONS)
    if "width" in options:
        options["width"] = style.inches(options["width"], "width =")
    options["everything"] = options.pop("all", False)
    names = options.get("rename")
    if isinstance(names, Mapping):
        options["rename"] = [f"{old}={new}" for old, new in names.items()]
    if y is not None:
        options["y"] = np.atleast_1d(y).tolist()
    if path is not None:
        style.kind(os.fspath(path))
    figure = lines(results, x, **options)
    if path is not None:
        style.save(figure, os.fspath(path), force)

    # a figure that no backend of pyplot manages has no picture of its own for a notebook
    def png() -> bytes:
        file = io.BytesIO()
        with style.drawing():
            figure.savefig(file, format="png", dpi=150)
        return file.getvalue()

    figure._repr_png_ = png
    return figure


class Result(results.Result):
    """Everything that a run recorded, in memory.

    ``rounds`` name -> (rounds,), with ``round`` itself; ``about`` name -> unit and description of these columns;
    ``ranks`` and ``clients`` name -> (ranks,) and (m,); ``selection`` (rounds, slots) as stored, see ``selected``;
    ``x`` (n,) and ``personal`` (m, n) the final models, None where there are none; ``attrs`` the root attributes;
    ``path`` the file, None for a result in memory.

        >>> result: mpifed.Result = mpifed.run(rounds=2)
        >>> result.status, result.cr, result.rounds["objective"].shape, result.x.shape
        ('finished', 2, (3,), (100,))
    """

    held: Any = None  # arrays or a frame of the run that made it in this program, which fit reads again

    @classmethod
    def of(cls, other: results.Result) -> Self:
        """A result of the room ``results`` as one of this class."""
        return cls(**{field.name: getattr(other, field.name) for field in dataclasses.fields(other)})

    def __repr__(self) -> str:
        return f"<Result of {printable(headline(self))}>"

    def _repr_html_(self) -> str:
        return html.page(self, headline(self))

    def summary(self) -> str:
        """Configuration, outcome, communication, times and ranks, as the command ``show`` prints them."""
        return printable(show(self), "\n")

    def plot(self, y: str | Sequence[str] | None = None, x: str = "round", **options: Any) -> Any:
        """A figure of matplotlib with the columns ``y`` against ``x``: see ``mpifed.plot``."""
        return draw([self], y, x, **options)

    def over_clients(self, name: str = "accuracy", unseen: bool = False) -> Columns:
        """A number of each client in every evaluation over all clients: ``result.over_clients("auc")["worst_tenth"]``.

        ``round`` (k,) and, (k,) each: ``mean``; ``worst_tenth``, the mean over a tenth of the clients with the worst,
        rounded up; ``sd`` with their number as divisor; ``iqr``, ``min``, ``max``; ``missing``, how many have none.
        ``unseen``: over the clients that never train. UserError for a number that the result does not have.
        """
        return over_clients(self.unseen if unseen else self.by_client, name)

    def fit(self, data: Any = None) -> Fit:
        """Coefficients with standard errors at the final model, as the command ``fit`` prints them.

        The samples of the run are read again. ``data`` says where they are now, where that is not what the result
        says: ``mpifed.load("out.h5").fit(data=mpifed.arrays(X, y, clients))``, or ``fit(data={"path": "new.csv"})``.
        Raises UserError where the problem has no Hessian or it is singular at this model, and for other data.
        """
        from mpifed.statistics.fitted import again, fitted  # it imports scipy.stats, which takes time

        with concerning(self.path or ""):
            config = experiment(study(self.config, {} if data is None else {"data": data}, {}))
            return fitted(self, again(self, config))

    def module(self, client: int | None = None) -> Any:
        """The torch.nn.Module of the run with the final model in it, or with the personal model of ``client``.

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
            wrong = f"the model of {self.path or 'the result'} is none of its problem, {problem.label()}"
            raise UserError(f"{wrong}: {message(error)}") from error

    def _personal(self, client: int) -> Any:
        """The personal model (n,) of a client. UserError where there is none."""
        if self.personal is None:
            raise UserError(
                "the result has no personal models: a method that has some stores them with record.personal = true"
            )
        if not 0 <= client < self.m:
            raise UserError(f"client = {client} is wrong: there are the clients 0 to {self.m - 1}")
        return self.personal[client]


def headline(result: results.Result) -> str:
    """fedgia on softmax / digits, 50 clients: finished after 30 rounds, f 0.42."""
    config = result.config
    names = (config.get(key, {}).get("name", "?") for key in ("algorithm", "problem", "data"))
    name, problem, data = (name.rpartition(":")[2] for name in names)  # my_methods.py:MyMethod
    f = [value for value in result.rounds.get("objective", np.zeros(0)).tolist() if math.isfinite(value)]
    value = f", f {f[-1]:.4g}" if f else ""
    return f"{name} on {problem} / {data}, {result.m} clients: {result.status} after {result.cr} rounds{value}"


def load(path: str | os.PathLike[str]) -> Result:
    """Read a result file, finished or still being written: ``mpifed.load("out.h5")``. UserError where it is none."""
    return Result.of(results.load(path))
