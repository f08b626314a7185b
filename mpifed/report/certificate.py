"""The page of `mpifed certify`: constants, conditions with both sides, bounds, and the rate of a run."""

import itertools
import math
import textwrap
from typing import Any

import numpy as np

from mpifed.core.typing import Array
from mpifed.report.tables import MARGIN, WIDTH, align_rows, format_number
from mpifed.results.result import RunRecord
from mpifed.theory.rates import TAIL, fit_line
from mpifed.theory.statements import Bound, Certificate, Condition, Constants

ANSWERS = {True: "yes", False: "no", None: "?"}
DEEP: dict[str, Any] = {"initial_indent": " " * 6, "subsequent_indent": " " * 8}
FIT = f"fitted by least squares, a line through log10 between {TAIL[0]:g} and {TAIL[1]:g} of the first value"


def format_certificate(title: str, certificate: Certificate, rounds: int, result: RunRecord | None = None) -> str:
    """Return the page of the certificate of a study of ``rounds`` rounds, and of its run where there is a result."""
    blocks = [[title]]
    if certificate.constants is not None:
        blocks.append(["constants", *(f"  {line}" for line in align_rows(constant_rows(certificate.constants)))])
    if certificate.theorem:
        blocks.append(
            [f"conditions of {certificate.theorem}", *condition_lines(certificate), *verdict_lines(certificate)]
        )
    if certificate.bounds:
        blocks.append([f"what it proves where they hold, after R = {rounds} rounds", *bound_lines(certificate, result)])
    if certificate.remarks:
        wrapped = (textwrap.wrap(f"  {text}", WIDTH, subsequent_indent="    ") for text in certificate.remarks)
        blocks.append(["remarks", *itertools.chain(*wrapped)])
    return "\n\n".join("\n".join(block) for block in blocks)


def constant_rows(c: Constants) -> list[tuple[str, ...]]:
    unknown = "the problem does not tell"
    return [
        ("L_i", format_range(c.L_min, c.L_max, unknown), "Lipschitz constants r_i of ∇f_i, least and largest"),
        ("μ_i", format_range(c.mu_min, c.mu_max, unknown), "lower bounds α_i of the curvature of f_i"),
        ("L/μ", format_value(c.condition_number, "not bounded"), "condition number max L_i/min μ_i"),
        ("heterogeneity", format_number(c.heterogeneity), f"(1/m) Σ ‖∇f_i‖² at {c.at}"),
        ("‖∇f‖²", format_number(c.grad_norm_sq), f"at {c.at}"),
        ("f", format_number(c.f), f"at {c.at}; {format_number(c.f_first)} at the first model"),
    ]


def format_range(smallest: float, largest: float, otherwise: str) -> str:
    if math.isnan(largest):
        return otherwise
    first, last = format_number(smallest), format_number(largest)
    return last if first == last else f"{first} … {last}"


def format_value(value: float, otherwise: str = "not known") -> str:
    return otherwise if math.isnan(value) else format_number(value)


def format_factor(value: float, otherwise: str = "not known") -> str:
    """Return a factor per round as text, one close to 1 as the difference from 1 so that it is not rounded to 1."""
    return f"1 − {format_number(1 - value)}" if 0.999 < value < 1 else format_value(value, otherwise)


def condition_lines(certificate: Certificate, width: int = WIDTH) -> list[str]:
    rows = align_rows([(ANSWERS[one.holds], one.name, format_sides(one)) for one in certificate.conditions])
    longest = max(map(len, rows), default=0)
    lines = []
    for row, one in zip(rows, certificate.conditions, strict=True):
        row = f"  {row}"
        line = f"{row:{longest + 2}}  {one.source}"
        lines += [line] if len(line) <= width else [row, *textwrap.wrap(one.source, width, **DEEP)]
    return lines


def format_sides(one: Condition) -> str:
    left, right = format_value(one.left, "?"), format_value(one.right, "?")
    if one.holds is not False:
        return f"{left} {one.relation} {right}"
    turned = {">=": "<", ">": "<=", "<=": ">", "<": ">=", "=": "≠"}[one.relation]
    return f"{left} {turned} {right}"


def verdict_lines(certificate: Certificate) -> list[str]:
    answers = [one.holds for one in certificate.conditions]
    yes, no, open_ = (answers.count(answer) for answer in (True, False, None))
    rest = f", {open_} cannot be decided from the study" if open_ else ""
    return [f"  {yes} of {len(answers)} hold, {no} do not{rest}"]


def bound_lines(certificate: Certificate, result: RunRecord | None) -> list[str]:
    """Return every bound as number and formula, and below it the value of the run."""
    lines = []
    for bound in certificate.bounds:
        text = format_factor if bound.kind == "factor" else format_value
        lines.append(f"  {bound.name}: {text(bound.value)}")
        lines += textwrap.wrap(f"{bound.formula}  [{bound.source}]", WIDTH, **DEEP)
        measurement = None if result is None else measure_bound(bound, certificate, result)
        if measurement is not None:
            value, how = measurement
            lines += textwrap.wrap(f"in this run: {text(value, 'no rate to fit')}, {how}", WIDTH, **DEEP)
    return lines


def measure_bound(bound: Bound, certificate: Certificate, result: RunRecord) -> tuple[float, str] | None:
    """Return the value of a run for the column that a bound is about, and its description.

    It is a fitted factor per round, or a number; None where there is nothing to compare.
    """
    values, name = bounded_column(bound.column, certificate.constants, result)
    if values is None or bound.kind == "number":
        return None
    if bound.kind == "factor":
        fit = fit_line(result.rounds["round"], values)
        r2 = "" if math.isnan(fit.r2) else f", R² {format_number(fit.r2)}"
        return fit.factor, f"factor per round of {name}: {FIT}{r2}"
    if bound.column == "grad_norm_sq":
        part = values[bound.first : -1]
        return (float(np.nanmin(part)), f"least {name}") if np.isfinite(part).any() else None
    return float(values[-1]), f"{name} in the last round"


def bounded_column(name: str, constants: Constants | None, result: RunRecord) -> tuple[Array | None, str]:
    """Return the column that a theorem bounds, or f − f* where that is not recorded, and its name; None without f*."""
    rounds = result.rounds
    if name == "grad_norm_sq" and name in rounds:
        return np.asarray(rounds[name], float), "‖∇f‖²"
    if constants is None or not name or constants.at != "the minimum x*":
        return None, ""
    if name == "dual_objective" and name in rounds:
        return np.asarray(rounds[name], float) + result.m * constants.f, "G − G*"
    return np.asarray(rounds["objective"], float) - constants.f, "f − f*"


def summarise_certificate(result: RunRecord) -> list[str]:
    """Return the conditions for the summary of a run that recorded them."""
    certificate = result.certificate if result.config.get("algorithm", {}).get("certify") else None
    if certificate is None:
        return []
    if certificate.conditions:
        return [*condition_lines(certificate, WIDTH - MARGIN), *verdict_lines(certificate)]
    return [line for text in certificate.remarks for line in textwrap.wrap(text, WIDTH - MARGIN)]
