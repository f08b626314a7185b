"""python docs/build.py: write docs/reference, results.md, studies/outcomes.md and rows.md from code and rows."""

from __future__ import annotations

import inspect
import os
import runpy
import sys
import tomllib
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.algorithms.parts import Step
from mpifed.cli import describe
from mpifed.cli.describe import KINDS, find_paper, first_sentence, option_row
from mpifed.core.component import StudyTable, analyse_type
from mpifed.features.matching import build_matrix
from mpifed.features.settings import Checkpoint, Evaluate, Experiment, Objective, Record
from mpifed.features.stop import StopRules
from mpifed.results import columns
from mpifed.results.certificate_group import CERTIFICATE
from mpifed.results.columns import ColumnInfo

HERE = Path(__file__).parent
FIELD = runpy.run_path(str(HERE / "field.py"))
PAPERS = runpy.run_path(str(HERE / "paper_tables.py"))
COMBINATIONS = runpy.run_path(str(HERE / "combinations.py"))
CONFLICTS = runpy.run_path(str(HERE / "conflicts.py"))
PROMISES = runpy.run_path(str(HERE / "promises.py"))
OUTCOMES = runpy.run_path(str(HERE / "outcomes.py"))

TABLES: dict[str, type[StudyTable]] = {
    "stop": StopRules,
    "objective": Objective,
    "evaluate": Evaluate,
    "record": Record,
    "checkpoint": Checkpoint,
    **describe.TABLES,
}
WRITTEN = "<!-- Written by `python docs/build.py`: change the code or the tables that it reads, not this page. -->"
PLACES = {
    "algorithms": "algorithm",
    "problems": "problem",
    "data": "data",
    "partitions": "data.partition",
    "selections": "selection",
    "steps": "algorithm.step",
    "solvers": "algorithm.solver",
    "optimizers": "algorithm.optimizer",
    "server_optimizers": "algorithm.server",
    "compressors": "compress.up",
    "distributions": "system.speed",
    "graphs": "graph",
    "attacks": "attack",
    "robust_means": "robust",
}
TITLES = {
    "data": "Data sets",
    "partitions": "Partitions of a data set",
    "steps": "Step sizes",
    "solvers": "Solvers of local problems",
    "optimizers": "Optimisers of local steps",
    "server_optimizers": "Optimisers of the server",
    "robust_means": "Robust means of uploads",
    "distributions": "Distributions of client properties",
}

RATES = """
Every step size and learning rate in the table takes a number or one of the rules below, such as
`algorithm.server_lr = {name = "cosine", a = 1.0, over = 100}`. A rule counts rounds from 0, or with `by = "step"` local
steps of the whole run, as `log2` always does; what a round uses once has the value of its first local step. Clients of
asynchronous runs have the rate of the round in which they were sent their model. The papers' guarantees are for
constant rates: where one that could be a number follows a rule, `certify` states no theorem. `algorithm.step` alone
takes `sqrt-samples`, which differs between clients. Penalties, momentum and weights of mixing are no rates."""
INDEX = """# Reference

Everything that an experiment file can name, with options, defaults and formulas. The same on the command line:
`python -m mpifed list` and `python -m mpifed describe NAME`. Where a docstring says *errata*, see
[errata](../studies/errata.md). To add names of your own, see [extending](../extending.md).

| page | what is in it |
| --- | --- |
| [The experiment file](experiment.md) | keys at the top of the file, and its tables |"""
RESULTS = """# Result files

A result is an HDF5 file. Open it with `mpifed.load("out.h5")`, h5py, HDFView or
`xarray.open_dataset("out.h5", group="rounds", engine="h5netcdf")`. Every dataset has the attributes `repeats`, in the
notation of UDUNITS, and `description`. `xarray.open_datatree` opens all groups at once. A file can be read during the
run, by these programs too, and a run that is killed at any moment leaves a file that opens. As long as a run can be
resumed, its checkpoint is in the folder `out.h5.checkpoint` beside the file; that may be a link to a folder on another
disk.
"""
ROUNDS = """One row per round. A column that does not apply to a run is absent; an algorithm may add columns of its own.
A round that is not evaluated (`evaluate.every`) has NaN for what evaluating gives. *Amount*: the value belongs to that
round alone, or has added up since the start; otherwise it is the state after the round. *Better*: which of two values
is the better one, where that can be said. Where no client has a test sample, columns over test samples are over
training samples. The attributes `samples` and `missing` of a dataset say which, and how many clients have none and are
left out."""


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table of Markdown, with an empty line before it."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    rule = ["---"] * len(head)
    return ["", *("| " + "".join(f"{cell} | ".lstrip() for cell in row).rstrip() for row in [head, rule, *cells])]


def options(cls: type[StudyTable], leave: Sequence[str] = ()) -> list[str]:
    """The options of a class; nothing where it has none."""
    rows = [option_row(field) for field in msgspec.structs.fields(cls) if field.name not in leave]
    cells = [(f"`{key}`", f"`{default}`", meaning) for key, default, meaning in rows]
    return table(("key", "default", "meaning"), cells) if cells else []


def entry(cls: type[StudyTable], up: str) -> list[str]:
    """A class: its module, its paper if it has one, its docstring, its options. ``up`` leads to the repository."""
    module = f"[`{cls.__module__}`]({up}{cls.__module__.replace('.', '/')}.py)"
    if (source := find_paper(cls)) is not None:
        module += ": " + source.citation.replace(source.number, f"[{source.number}]({source.link})")
    return ["", module, "", "```text", (inspect.getdoc(cls) or "").split("\n\n    >>>")[0], "```", *options(cls)]


def experiment() -> list[str]:
    """The keys at the top of an experiment file, and its tables."""
    lines = ["# The experiment file", "", "Keys at the top of the file; every key has a default."]
    lines += options(Experiment, ("data", "problem", "algorithm", "selection", *TABLES))
    named = ", ".join(f"[{title(kind).lower()}]({page(kind)}.md)" for kind in KINDS if kind != "algorithms")
    lines += ["", f"What its other tables name is on pages of its own: [algorithms](index.md#algorithms), {named}."]
    for name, cls in TABLES.items():
        lines += ["", f"## [{name}]", *entry(cls, "../../")]
    return lines


def methods() -> list[str]:
    """All methods in one table."""
    return [FIELD["introduction"](), *table(FIELD["HEAD"], FIELD["rows"]())]


def what_goes_with_what() -> list[str]:
    """Which method goes with which table, which tables with each other, and why not; and what keeps which promise."""
    lines: list[str] = COMBINATIONS["lines"](table)
    lines += CONFLICTS["lines"](table, COMBINATIONS["refused"], COMBINATIONS["marked"])
    return [*lines, *PROMISES["lines"](table, COMBINATIONS["private"])]


def combinations() -> list[str]:
    """Which algorithm runs on which problem, and why not."""
    found = build_matrix()
    lines = ["# Algorithms and problems", "", "Which algorithm runs on which problem, with default options."]
    cells = [(f"[`{name}`](algorithms/{name}.md)", *row) for name, row in found.cells.items()]
    lines += table(("", *found.problems), cells)
    lines += ["", *(f"- {mark} {reason}." for mark, reason in found.notes.items())]
    return [*lines, "", "With other options:", "", *(f"- {text}." for text in found.options)]


OVERVIEWS = {
    "methods": ("All methods in one table", "what each method sends, keeps, computes and proves", methods),
    "matrix": ("Algorithms and problems", "which algorithm runs on which problem, and why not", combinations),
    "what-goes-with-what": (
        "What goes with what",
        "which method goes with which selection, schedule, graph, compression and masks, and why not",
        what_goes_with_what,
    ),
}  # page -> its title, what the contents say of it, its lines


def method(name: str, cls: type[Algorithm]) -> list[str]:
    """The page of a method: formula, options, and its row in the table of all methods."""
    lines = [f"# {FIELD['title'](name)}", "", f'`algorithm.name = "{name}"`', *entry(cls, "../../../")]
    facts = zip(FIELD["HEAD"][1:-1], FIELD["row"](name)[1:-1], strict=True)
    lines += table(("", "[all methods](../methods.md)"), [(head, cell) for head, cell in facts if cell])
    more = (
        [f"[Its paper: equations, figures, differences](../../studies/{name}.md)"] if paper_page(name).exists() else []
    )
    return [*lines, "", " · ".join(["[Problems it runs on](../matrix.md)", *more])]


def paper_page(name: str) -> Path:
    """The page of a method's paper, which five have."""
    return HERE / "studies" / f"{name}.md"


def family(kind: str) -> list[str]:
    """The page of all other components of one kind."""
    names = KINDS[kind].choices
    lines = [f"# {title(kind)}", "", f"`{PLACES[kind]}.name`, by default `{KINDS[kind].default}`."]
    lines += rates() if kind == "steps" else []
    for name in names:
        lines += ["", f"## {name}", *entry(KINDS[kind].member(name, kind), "../../")]
    return lines


def rates() -> list[str]:
    """All step sizes and learning rates, with the classes that have them and their meaning."""
    found: dict[tuple[str, str], list[str]] = {}
    for kind in ("algorithms", "solvers", "server_optimizers"):
        for name in KINDS[kind].choices:
            for field in msgspec.structs.fields(KINDS[kind].member(name, kind)):
                if Step in analyse_type(field.type)[2]:
                    key, _, meaning = option_row(field)
                    place = f"`{PLACES[kind]}.{key}`", meaning.partition("  [")[0]
                    found.setdefault(place, []).append(f"`{name}`")
    return [RATES, *table(("rate", "of", "meaning"), [(key, ", ".join(of), text) for (key, text), of in found.items()])]


def title(kind: str) -> str:
    return TITLES.get(kind, kind.capitalize())


def page(kind: str) -> str:
    return kind.replace("_", "-")


def index() -> list[str]:
    """The contents of the reference."""
    lines = [INDEX, *(f"| [{head}]({name}.md) | {what} |" for name, (head, what, _) in OVERVIEWS.items())]
    for kind, members in KINDS.items():
        if kind != "algorithms":
            named = ", ".join(f"`{name}`" for name in members.choices)
            lines.append(f"| [{title(kind)}]({page(kind)}.md) | `{PLACES[kind]}`: {named} |")
    lines += ["| [Result files](../results.md) | every attribute and column |", "", "## Algorithms", ""]
    found = {name: Algorithm.member(name, "algorithm") for name in Algorithm.choices}
    return lines + [f"- [`{name}`](algorithms/{name}.md): {first_sentence(cls)}" for name, cls in found.items()]


def reference() -> dict[str, list[str]]:
    """The pages of docs/reference, by their paths in docs."""
    found = {"index": index(), "experiment": experiment()}
    found |= {name: lines() for name, (_, _, lines) in OVERVIEWS.items()}
    found |= {f"algorithms/{name}": method(name, Algorithm.member(name, "algorithm")) for name in Algorithm.choices}
    found |= {page(kind): family(kind) for kind in KINDS if kind != "algorithms"}
    return {f"reference/{name}.md": lines for name, lines in found.items()}


def group(name: str, text: str, members: Mapping[str, ColumnInfo]) -> list[str]:
    """A group of the result file and its datasets."""
    rows = [(f"`{key}`", column.unit, kind(column), column.description) for key, column in members.items()]
    return ["", f"## {name}", "", text, *table(("dataset", "units", "type", "description"), rows)]


def kind(column: ColumnInfo) -> str:
    return "integer" if column.integer else ""


def rounds() -> list[str]:
    """The group /rounds, with how each column adds up and which value is better."""
    better = {1: "higher", -1: "lower", 0: ""}
    spans = {"state": "", "round": "of the round", "total": "since the start"}
    rows = [
        (f"`{key}`", own.unit, kind(own), spans[own.span], better[own.better], own.description)
        for key, own in {"round": columns.SCALES["round"], **columns.COLUMNS}.items()
    ]
    head = ("dataset", "units", "type", "amount", "better", "description")
    return ["", "## /rounds", "", ROUNDS, *table(head, rows)]


def results() -> list[str]:
    """docs/results.md; results.toml says what the attributes and the groups are."""
    told = tomllib.loads((HERE / "results.toml").read_text("utf-8"))
    attributes = [(f"`{key}`", meaning) for key, meaning in told["attributes"].items()]
    scales = columns.SCALES
    groups = {
        "ranks": {"rank": scales["rank"], **columns.RANKS},
        "clients": {"client": scales["client"], **columns.CLIENTS, **columns.BY_CLIENT},
        "unseen": {"client": scales["client"], **columns.UNSEEN},
        "model": {"parameter": scales["parameter"], **columns.MODEL},
        "models": columns.MODELS,
        "selection": {"slot": scales["slot"], "selection": columns.SELECTION},
        "certificate": CERTIFICATE,
    }
    lines = [RESULTS, "## Attributes of the file", *table(("attribute", "meaning"), attributes), *rounds()]
    for name, members in groups.items():
        lines += group(f"/{name}", told["groups"][name].format(all=columns.ALL, most=columns.ALL_LISTED), members)
    return lines


@cache
def pages() -> dict[str, str]:
    """Path in docs -> text of the pages that are written from the code."""
    found = {**reference(), "results.md": results()}
    found |= PAPERS["pages"](table, OUTCOMES)
    found |= {"studies/outcomes.md": OUTCOMES["lines"](table), "studies/rows.md": OUTCOMES["origins"](table)}
    return {path: "\n".join([title_of(lines), "", WRITTEN, *rest(lines)]) + "\n" for path, lines in found.items()}


def title_of(lines: list[str]) -> str:
    """The first line of a page."""
    return lines[0].strip("\n").partition("\n")[0]


def rest(lines: list[str]) -> list[str]:
    """What follows the title of a page, which may stand in its first lines."""
    more = lines[0].strip("\n").partition("\n")[2]
    return [more, *lines[1:]] if more else lines[1:]


def write(docs: Path) -> None:
    """Write all pages, and remove those of the reference that are no longer there."""
    wanted = pages()
    for path in (docs / "reference").rglob("*.md"):
        if path.relative_to(docs).as_posix() not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (docs / name).parent.mkdir(parents=True, exist_ok=True)
        (docs / name).write_text(text, "utf-8")


if __name__ == "__main__":
    if runpy.run_path(str(HERE / "methods.py"))["write"]():
        os.execv(sys.executable, [sys.executable, *sys.argv])  # the pages are those of the new list
    write(HERE)
