"""The page of a fit for a terminal, and its coefficients as a table in Markdown, LaTeX and CSV."""

import math

from mpifed.core.errors import UserError
from mpifed.report import tables
from mpifed.report.tables import ABSENT, FORMATS, Number, ReportTable
from mpifed.results.coefficients import LEVEL, Fit

OF_RUN = ", for standardised features"


def format_fit(title: str, fit: Fit, form: str = "terminal") -> str:
    """Return the fit in one of FORMATS; except for CSV with its facts above and its notes below."""
    if form not in FORMATS:
        raise UserError(f"--format {form} is wrong: it must be {', '.join(FORMATS)}")
    table = FORMATS[form](coefficient_table(fit, form))
    if form == "csv":
        return table
    lines = [title, *fact_lines(fit)]
    below = [f"note: {note}" for note in fit.notes]
    if form == "latex":
        return "\n".join([*(f"% {line}" for line in lines), table, *(f"% {line}" for line in below)])
    return "\n".join([*lines, "", table, *([""] if below else []), *below])


def coefficient_table(fit: Fit, form: str) -> ReportTable:
    table = ReportTable([("coefficient", "coefficient")], ["coefficient"], [[name] for name in fit.names], [1.0])
    if fit.penalised:
        table.add(("estimate", "estimate"), "estimate", [Number(float(value)) for value in fit.x])
        return table
    side = f"{100 * LEVEL:.0f} %"
    columns = {
        "estimate": ("estimate", fit.x),
        "standard_error": ("std error", fit.error),
        "standard_error_by_client": ("by client", fit.robust),
        "statistic": (fit.law, fit.statistic),
        "p": ("p", fit.p),
        "low": (f"{side} from", fit.low),
        "high": ("to", fit.high),
    }
    if fit.ratio:
        ratios, low, high = fit.ratios().T
        columns["ratio"] = (fit.ratio, ratios)
        columns["ratio_low"] = (f"{side} from", low)
        columns["ratio_high"] = ("to", high)
    if form == "csv":  # whose notes stand elsewhere
        columns["newton_step"] = ("newton step", fit.step)
    for name, (head, values) in columns.items():
        table.add((head, tables.escape_latex(head)), name, [Number(float(value)) for value in values])
    return table


def fact_lines(fit: Fit) -> list[str]:
    """Return the size of a fit, how far it is from the optimum, and what it cost."""

    def number(value: float) -> str:
        return ABSENT if math.isnan(value) else f"{value:.6g}"

    about = f"f {fit.f:.8g}; log-likelihood {number(fit.likelihood)}; AIC {number(fit.aic)}"
    about += f"; dispersion {number(fit.dispersion)}"
    optimum = f"‖∇f‖ {fit.gradient:.2g}, Newton decrement {fit.decrement:.2g}"
    joined = ", so"
    cost = "; the Hessian and gradients of all clients, for standard "
    cost += f"errors: {fit.hessian_bytes:,} bytes more"
    if fit.penalised:
        about = f"F {fit.f:.8g}; {fit.zeros:,} of {len(fit.x):,} coefficients are 0"
        optimum = f"‖x − prox(x − ∇f(x))‖ {fit.gradient:.2g}"
        joined = ", and"
        cost = ""
        if not math.isnan(fit.gap):
            optimum += f", duality gap {fit.gap:.2g}: F − F* is at most that"
    if not math.isnan(fit.distance):
        optimum += f"{joined} ‖x − x*‖ ≤ {fit.distance:.2g}"
    return [
        f"{fit.samples:,} samples of {fit.clients:,} clients; {about}",
        f"from the optimum{OF_RUN * fit.standardised}: {optimum}",
        f"cost: {fit.rounds} rounds, {fit.bytes:,} bytes{cost}",
    ]
