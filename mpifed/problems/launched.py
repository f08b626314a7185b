"""Which problems kernels of a GPU know well enough to take whole local steps, and what these are told of them."""

from __future__ import annotations

from functools import partial
from inspect import unwrap
from typing import Any

from mpifed.data.cuda.forms import Form
from mpifed.problems.base import Problem
from mpifed.problems.linear_model import LinearModel
from mpifed.problems.nonconvex_logistic import NonconvexLogistic
from mpifed.problems.softmax import Softmax

GRADIENT = ("grad", "_pass", "_factor", "_weights")  # what computes ∇f_i of a linear model
PENALTIES: dict[Any, Any] = {LinearModel.penalty_grad: "ridge", NonconvexLogistic.penalty_grad: "bounded"}


def form_of(problem: Problem) -> Form | None:
    """The form of a problem for local steps in one launch; None where its gradient is another one."""
    if not problem.launches():
        return None
    if isinstance(problem, Softmax):
        return Form("softmax", "ridge", problem.bias, partial(alike, problem.lam))
    cls: Any = type(problem)
    if not isinstance(problem, LinearModel) or any(
        unwrap(getattr(cls, name)) is not getattr(LinearModel, name) for name in GRADIENT
    ):
        return None
    residual: Any = "logistic" if problem.mean == "logistic" else "linear"
    penalty = PENALTIES.get(unwrap(cls.penalty_grad))
    return None if penalty is None else Form(residual, penalty, False, partial(weighted, problem))


def alike(number: float, block: Any) -> Any:
    """One factor for all clients of a block: (c,)."""
    return block.xp.full(len(block), number, dtype=block.xp.float64)


def weighted(problem: LinearModel, block: Any) -> Any:
    """The factors of the regulariser of the clients of a block: (c,)."""
    return problem.weight(block.d)
