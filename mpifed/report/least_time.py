"""The page of `mpifed certify` for an asynchronous run: its time to ε, the least possible time, and their ratio."""

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np

from mpifed.core.errors import UserError
from mpifed.report import axes, palette
from mpifed.report.certificate import format_range, format_value
from mpifed.report.curves import require_drawable
from mpifed.report.style import SINGLE, figure_with_legend
from mpifed.report.tables import WIDTH, align_rows, format_number
from mpifed.results.result import RunRecord
from mpifed.theory.least_time import SOURCE, LeastTimeInputs, bound_formula, lower_bound

FEW = 6  # values of ε that are printed by default
POINTS = 200  # of the curve of the bound


def parse_accuracies(text: str) -> list[float]:
    """Return the values of ε in a text such as 1e-3,1e-4, falling. UserError for one that is not above 0."""
    values = []
    for part in text.split(","):
        try:
            eps = float(part)
        except ValueError:
            eps = math.nan
        if not 0 < eps < math.inf:
            raise UserError(f"--eps {part.strip() or text!r} is wrong: ε, a bound of ‖∇f‖², must be a number above 0")
        values.append(eps)
    return sorted(set(values), reverse=True)


def seconds_to(result: RunRecord, eps: float) -> float:
    """Return the simulated seconds until ‖∇f‖² <= ε in the record of a run; inf where it never is."""
    met = np.asarray(result.rounds["grad_norm_sq"], float) <= eps
    return float(result.rounds["simulated_seconds"][np.argmax(met)]) if met.any() else math.inf


def powers_within(result: RunRecord) -> list[float]:
    """Return the powers of ten below the first ‖∇f‖² of a run and not below its smallest, falling."""
    squares = np.asarray(result.rounds["grad_norm_sq"], float)
    positive = squares[np.isfinite(squares) & (squares > 0)]
    if not len(positive):
        return []
    highest, lowest = math.ceil(math.log10(positive[0])) - 1, math.ceil(math.log10(positive.min()))
    return [10.0**power for power in range(highest, lowest - 1, -1)][-FEW:]


def format_least_time(setting: LeastTimeInputs, result: RunRecord | None, asked: Sequence[float]) -> str:
    """Return the section of the page about the least time: constants, and a row for each ε."""
    rows = asked or (powers_within(result) if result is not None else [])
    lines = ["the least time there is, up to a universal constant c that is taken as 1"]
    lines += [f"  {line}" for line in align_rows(constant_rows(setting))]
    lines += textwrap.wrap(
        f"{bound_formula(setting.same)}  [{SOURCE}]", WIDTH, initial_indent="  ", subsequent_indent="    "
    )
    if rows:
        head = ("ε", "least seconds") if result is None else ("ε", "seconds", "least seconds", "ratio")
        lines += [f"  {line}" for line in align_rows([head, *(time_row(setting, result, eps) for eps in rows)])]
    elif result is not None:
        lines.append("  the run reached no power of ten below its first ‖∇f‖²; --eps asks for others")
    else:
        lines.append("  --eps 1e-3,1e-4 asks for seconds to these ε")
    about = (
        "It is about the worst f with these constants and methods that use gradients of clients alone, in expectation; "
        "a run is one f and one seed, and may take less."
    )
    return "\n".join([*lines, *textwrap.wrap(about, WIDTH, initial_indent="  ", subsequent_indent="  ")])


def constant_rows(setting: LeastTimeInputs) -> list[tuple[str, ...]]:
    tau = setting.tau
    seconds = format_range(float(tau.min()), float(tau.max()), "not known")
    rows = [
        ("τ_i", seconds, f"seconds for a gradient of each of {len(tau)} clients"),
        ("L", format_value(setting.L), "Lipschitz constant of ∇f"),
        ("Δ", format_value(setting.delta), "f(x⁰) − f*"),
        ("σ²", format_value(setting.variance), "variance of a gradient"),
    ]
    rows = [(key, cell, f"{words}; {describe_origin(setting.estimated.get(key), cell)}") for key, cell, words in rows]
    which = "all have one gradient where it was looked at: one f" if setting.same else "they differ"
    return [*rows, ("f_i", "one f" if setting.same else "unlike", which)]


def describe_origin(estimated: str | None, cell: str) -> str:
    if cell == "not known":
        return "the problem does not tell"
    return "known" if estimated is None else f"estimated: {estimated}"


def time_row(setting: LeastTimeInputs, result: RunRecord | None, eps: float) -> tuple[str, ...]:
    least_seconds = lower_bound(setting, eps)
    if result is None:
        return format_number(eps), format_value(least_seconds)
    seconds = seconds_to(result, eps)
    ratio = seconds / least_seconds if least_seconds > 0 else math.nan
    reached = format_number(seconds) if math.isfinite(seconds) else "not reached"
    compared = format_number(ratio) if math.isfinite(ratio) else "—"
    return format_number(eps), reached, format_value(least_seconds), compared


def plot_least_time(setting: LeastTimeInputs, result: RunRecord) -> Any:
    """Draw the simulated seconds to ε over ε, of a run and of the bound, on logarithmic axes."""
    squares = np.minimum.accumulate(np.nan_to_num(np.asarray(result.rounds["grad_norm_sq"], float), nan=math.inf))
    seconds = np.asarray(result.rounds["simulated_seconds"], float)
    falls = np.flatnonzero((np.diff(squares, prepend=math.inf) < 0) & (seconds > 0) & (squares > 0))
    bounds = np.array([])
    if len(falls):
        eps = np.geomspace(squares[falls[0]], squares[falls[-1]], POINTS)
        bounds = np.array([lower_bound(setting, value) for value in eps])
    missing = "the run has no ‖∇f‖² after its start, or L or Δ are not known"
    require_drawable(bool(np.isfinite(bounds).any()), missing)
    name = result.config["algorithm"]["name"]
    looks = [*palette.curve_styles([name]), {"color": palette.BLACK, "linestyle": "--"}]
    with figure_with_legend(SINGLE, (1, 1), [name.rpartition(":")[2], "least time, c = 1"], looks, (None,)) as (
        figure,
        panels,
    ):
        axis = panels[0, 0]
        # The seconds to ε are those of the first round whose smallest ‖∇f‖² is at most ε.
        steps = {"drawstyle": "steps-pre", "markevery": max(1, len(falls) // 6)}
        axis.plot(squares[falls], seconds[falls], **looks[0], **steps)
        axis.plot(eps, bounds, **looks[1])
        axis.set(xlabel="ε, bound of ‖∇f‖²", ylabel="simulated seconds", xscale="log", yscale="log")
        axes.label_decades(axis.xaxis)
        axis.invert_xaxis()
    return figure
