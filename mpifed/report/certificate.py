"""What `mpifed certify` prints: constants, conditions with both sides, what follows, and the rate that a run had."""

import itertools
import math
import textwrap
from typing import Any

import numpy as np

from mpifed.core.typing import Array
from mpifed.report.layout import MARGIN, WIDTH, aligned, number
from mpifed.results.result import Result
from mpifed.theory.rates import TAIL, line
from mpifed.theory.statements import Bound, Certificate, Condition, Constants

ANSWERS = {True: "yes", False: "no", None: "?"}
DEEP: dict[str, Any] = {"initial_indent": " " * 6, "subsequent_indent": " " * 8}
FIT = f"fitted by least squares, a line through log10 between {TAIL[0]:g} and {TAIL[1]:g} of the first value"


def page(title: str, certificate: Certificate, rounds: int, result: Result | None = None) -> str:
    """The whole certificate of a study of so many rounds, and of its run where there is a result."""
    blocks = [[title]]
    if certificate.constants is not None:
        blocks.append(["constants", *(f"  {line}" for line in aligned(constants(certificate.constants)))])
    if certificate.theorem:
        blocks.append([f"conditions of {certificate.theorem}", *conditions(certificate), *verdict(certificate)])
    if certificate.bounds:
        blocks.append([f"what it proves where they hold, after R = {rounds} rounds", *proved(certificate, result)])
    if certificate.remarks:
        wrapped = (textwrap.wrap(f"  {text}", WIDTH, subsequent_indent="    ") for text in certificate.remarks)
        blocks.append(["remarks", *itertools.chain(*wrapped)])
    return "\n\n".join("\n".join(block) for block in blocks)


def constants(c: Constants) -> list[tuple[str, ...]]:
    lacking = "the problem does not tell"
    return [
        ("L_i", span(c.L_min, c.L_max, lacking), "Lipschitz constants r_i of ∇f_i, least and largest"),
        ("μ_i", span(c.mu_min, c.mu_max, lacking), "lower bounds α_i of the curvature of f_i"),
        ("L/μ", shown(c.condition_number, "not bounded"), "condition number max L_i/min μ_i"),
        ("heterogeneity", number(c.heterogeneity), f"(1/m) Σ ‖∇f_i‖² at {c.at}"),
        ("‖∇f‖²", number(c.grad_norm_sq), f"at {c.at}"),
        ("f", number(c.f), f"at {c.at}; {number(c.f_first)} at the first model"),
    ]


def span(least: float, most: float, otherwise: str) -> str:
    if math.isnan(most):
        return otherwise
    first, last = number(least), number(most)
    return last if first == last else f"{first} … {last}"


def shown(value: float, otherwise: str = "not known") -> str:
    return otherwise if math.isnan(value) else number(value)


def slow(value: float, otherwise: str = "not known") -> str:
    """A factor per round; close to 1 as the difference from 1, so that it is not rounded to 1."""
    return f"1 − {number(1 - value)}" if 0.999 < value < 1 else shown(value, otherwise)


def conditions(certificate: Certificate, width: int = WIDTH) -> list[str]:
    rows = aligned([(ANSWERS[one.holds], one.name, sides(one)) for one in certificate.conditions])
    longest = max(map(len, rows), default=0)
    lines = []
    for row, one in zip(rows, certificate.conditions, strict=True):
        row = f"  {row}"
        line = f"{row:{longest + 2}}  {one.source}"
        lines += [line] if len(line) <= width else [row, *textwrap.wrap(one.source, width, **DEEP)]
    return lines


def sides(one: Condition) -> str:
    left, right = shown(one.left, "?"), shown(one.right, "?")
    if one.holds is not False:
        return f"{left} {one.relation} {right}"
    turned = {">=": "<", ">": "<=", "<=": ">", "<": ">=", "=": "≠"}[one.relation]
    return f"{left} {turned} {right}"


def verdict(certificate: Certificate) -> list[str]:
    answers = [one.holds for one in certificate.conditions]
    yes, no, open_ = (answers.count(answer) for answer in (True, False, None))
    rest = f", {open_} cannot be decided from the study" if open_ else ""
    return [f"  {yes} of {len(answers)} hold, {no} do not{rest}"]


def proved(certificate: Certificate, result: Result | None) -> list[str]:
    """Every bound as number and formula, and below it what the run had."""
    lines = []
    for bound in certificate.bounds:
        text = slow if bound.kind == "factor" else shown
        lines.append(f"  {bound.name}: {text(bound.value)}")
        lines += textwrap.wrap(f"{bound.formula}  [{bound.source}]", WIDTH, **DEEP)
        found = None if result is None else measured(bound, certificate, result)
        if found is not None:
            value, how = found
            lines += textwrap.wrap(f"in this run: {text(value, 'no rate to fit')}, {how}", WIDTH, **DEEP)
    return lines


def measured(bound: Bound, certificate: Certificate, result: Result) -> tuple[float, str] | None:
    """What the run had of the column that a bound is about, the fitted factor per round or a value, and what it is."""
    values, name = column(bound.column, certificate.constants, result)
    if values is None or bound.kind == "number":
        return None
    if bound.kind == "factor":
        found = line(result.rounds["round"], values)
        r2 = "" if math.isnan(found.r2) else f", R² {number(found.r2)}"
        return found.factor, f"factor per round of {name}: {FIT}{r2}"
    if bound.column == "grad_norm_sq":
        part = values[bound.first : -1]
        return (float(np.nanmin(part)), f"least {name}") if np.isfinite(part).any() else None
    return float(values[-1]), f"{name} in the last round"


def column(wanted: str, constants: Constants | None, result: Result) -> tuple[Array | None, str]:
    """The quantity that a theorem is about, or f − f* where that is not recorded, and its name; None without f*."""
    rounds = result.rounds
    if wanted == "grad_norm_sq" and wanted in rounds:
        return np.asarray(rounds[wanted], float), "‖∇f‖²"
    if constants is None or not wanted or constants.at != "the minimum x*":
        return None, ""
    if wanted == "dual_objective" and wanted in rounds:
        return np.asarray(rounds[wanted], float) + result.m * constants.f, "G − G*"
    return np.asarray(rounds["objective"], float) - constants.f, "f − f*"


def brief(result: Result) -> list[str]:
    """The conditions in the summary of a run that recorded them."""
    certificate = result.certificate if result.config.get("algorithm", {}).get("certify") else None
    if certificate is None:
        return []
    if certificate.conditions:
        return [*conditions(certificate, WIDTH - MARGIN), *verdict(certificate)]
    return [line for text in certificate.remarks for line in textwrap.wrap(text, WIDTH - MARGIN)]
