"""What `mpifed certify` prints of an asynchronous run: its time to ε, the least there is, and their ratio."""

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.report import palette
from mpifed.report.certificate import shown, span
from mpifed.report.layout import WIDTH, aligned, number
from mpifed.report.style import SINGLE, framed
from mpifed.results.result import Result
from mpifed.theory.least_time import SOURCE, Setting, bound, formula

FEW = 6  # values of ε that are printed where none is asked for
POINTS = 200  # of the curve of the bound
CLOSE = 30.0  # ratio of ε up to which an axis has more numbers than powers of ten


def accuracies(text: str) -> list[float]:
    """The values of ε in a text such as 1e-3,1e-4, falling. UserError for one that is not above 0."""
    found = []
    for part in text.split(","):
        try:
            eps = float(part)
        except ValueError:
            eps = math.nan
        if not 0 < eps < math.inf:
            raise UserError(f"--eps {part.strip() or text!r} is wrong: ε, a bound of ‖∇f‖², must be a number above 0")
        found.append(eps)
    return sorted(set(found), reverse=True)


def seconds_to(result: Result, eps: float) -> float:
    """Simulated seconds until ‖∇f‖² <= ε in the record of a run; inf where it never is."""
    met = np.asarray(result.rounds["grad_norm_sq"], float) <= eps
    return float(result.rounds["simulated_seconds"][np.argmax(met)]) if met.any() else math.inf


def reached(result: Result) -> list[float]:
    """Powers of ten below the first ‖∇f‖² of a run and not below its least, falling."""
    squares = np.asarray(result.rounds["grad_norm_sq"], float)
    known = squares[np.isfinite(squares) & (squares > 0)]
    if not len(known):
        return []
    highest, lowest = math.ceil(math.log10(known[0])) - 1, math.ceil(math.log10(known.min()))
    return [10.0**power for power in range(highest, lowest - 1, -1)][-FEW:]


def block(setting: Setting, result: Result | None, asked: Sequence[float]) -> str:
    """The part of the page about the least time: constants, and a row for each ε."""
    rows = asked or (reached(result) if result is not None else [])
    lines = ["the least time there is, up to a universal constant c that is taken as 1"]
    lines += [f"  {line}" for line in aligned(constants(setting))]
    lines += textwrap.wrap(f"{formula(setting.same)}  [{SOURCE}]", WIDTH, initial_indent="  ", subsequent_indent="    ")
    if rows:
        head = ("ε", "least seconds") if result is None else ("ε", "seconds", "least seconds", "ratio")
        lines += [f"  {line}" for line in aligned([head, *(row(setting, result, eps) for eps in rows)])]
    elif result is not None:
        lines.append("  the run reached no power of ten below its first ‖∇f‖²; --eps asks for others")
    else:
        lines.append("  --eps 1e-3,1e-4 asks for seconds to these ε")
    about = (
        "It is about the worst f with these constants and methods that use gradients of clients alone, in expectation; "
        "a run is one f and one seed, and may take less."
    )
    return "\n".join([*lines, *textwrap.wrap(about, WIDTH, initial_indent="  ", subsequent_indent="  ")])


def constants(setting: Setting) -> list[tuple[str, ...]]:
    tau = setting.tau
    seconds = span(float(tau.min()), float(tau.max()), "not known")
    rows = [
        ("τ_i", seconds, f"seconds for a gradient of each of {len(tau)} clients"),
        ("L", shown(setting.L), "Lipschitz constant of ∇f"),
        ("Δ", shown(setting.delta), "f(x⁰) − f*"),
        ("σ²", shown(setting.variance), "variance of a gradient"),
    ]
    rows = [(key, cell, f"{words}; {state(setting.estimated.get(key), cell)}") for key, cell, words in rows]
    which = "all have one gradient where it was looked at: one f" if setting.same else "they differ"
    return [*rows, ("f_i", "one f" if setting.same else "unlike", which)]


def state(estimated: str | None, cell: str) -> str:
    if cell == "not known":
        return "the problem does not tell"
    return "known" if estimated is None else f"estimated: {estimated}"


def row(setting: Setting, result: Result | None, eps: float) -> tuple[str, ...]:
    least = bound(setting, eps)
    if result is None:
        return number(eps), shown(least)
    seconds = seconds_to(result, eps)
    took = number(seconds) if math.isfinite(seconds) else "not reached"
    ratio = seconds / least if least > 0 else math.nan
    return number(eps), took, shown(least), number(ratio) if math.isfinite(ratio) else "—"


def picture(setting: Setting, result: Result) -> Any:
    """A figure of the simulated seconds to ε over ε, of a run and of the bound, on logarithmic axes."""
    squares = np.minimum.accumulate(np.nan_to_num(np.asarray(result.rounds["grad_norm_sq"], float), nan=math.inf))
    seconds = np.asarray(result.rounds["simulated_seconds"], float)
    falls = np.flatnonzero((np.diff(squares, prepend=math.inf) < 0) & (seconds > 0) & (squares > 0))
    least = np.array([])
    if len(falls):
        eps = np.geomspace(squares[falls[0]], squares[falls[-1]], POINTS)
        least = np.array([bound(setting, value) for value in eps])
    if not np.isfinite(least).any():
        raise UserError("there is nothing to draw: the run has no ‖∇f‖² after its start, or L or Δ are not known")
    name = result.config["algorithm"]["name"]
    looks = [*palette.looks([name]), {"color": palette.BLACK, "linestyle": "--"}]
    with framed(SINGLE, (1, 1), [name.rpartition(":")[2], "least time, c = 1"], looks, (None,)) as (figure, places):
        axis = places[0, 0]
        steps(axis, squares[falls], seconds[falls], looks[0])
        axis.plot(eps, least, **looks[1])
        axis.set(xlabel="ε, bound of ‖∇f‖²", ylabel="simulated seconds", xscale="log", yscale="log")
        numbered(axis, eps)
    return figure


def numbered(axis: Any, eps: Array) -> None:
    """Make ε fall to the right; where it falls by few powers of ten, with the numbers 1, 2, 5 of each."""
    from matplotlib import ticker

    axis.invert_xaxis()
    axis.xaxis.set_minor_formatter(ticker.NullFormatter())
    if eps.max() < CLOSE * eps.min():
        axis.xaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
        axis.xaxis.set_major_formatter(lambda value, index: f"{value:g}")


def steps(axis: Any, squares: Array, seconds: Array, look: dict[str, Any]) -> None:
    """The seconds to ε: those of the first round whose least ‖∇f‖² is at most ε."""
    axis.plot(squares, seconds, **look, drawstyle="steps-pre", markevery=max(1, len(squares) // 6))
