"""python docs/build.py: write reference.md, results.md and field.md from the docstrings and tables of the code."""

from __future__ import annotations

import inspect
import runpy
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from mpifed.cli.describe import KINDS, option, paper
from mpifed.core.component import Table
from mpifed.experiment.checkpoint import Checkpoint
from mpifed.experiment.config import Evaluate, Experiment, Record
from mpifed.experiment.matching import matrix
from mpifed.experiment.stop import Stop
from mpifed.federation.timing.arrivals import Asynchronous
from mpifed.federation.timing.system import System
from mpifed.federation.wire.compress import Compress
from mpifed.federation.wire.masks import Masks
from mpifed.graphs.base import Graph
from mpifed.results import columns, group_columns
from mpifed.results.certificate_group import CERTIFICATE
from mpifed.results.columns import Column

TABLES: dict[str, type[Table]] = {
    "stop": Stop,
    "evaluate": Evaluate,
    "record": Record,
    "checkpoint": Checkpoint,
    "system": System,
    "asynchronous": Asynchronous,
    "masks": Masks,
    "compress": Compress,
    "graph": Graph,
}
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
}

REFERENCE = """# Reference

Everything an experiment file can name, its options, their defaults and the formulas, generated from the code by
`python docs/build.py`. On the command line: `python -m mpifed list` and `python -m mpifed describe NAME`. Where a
docstring says *errata*, see [errata.md](errata.md); how to add to these lists is in [extending.md](extending.md).
"""

RESULTS = """# Result files

A result is an HDF5 file. Open it with `mpifed.load("out.h5")`, h5py, HDFView or
`xarray.open_dataset("out.h5", group="rounds", engine="h5netcdf")`. Every dataset has the attributes `units`, in the
notation of UDUNITS, and `description`. A file can be read during the run, and a run that is killed at any moment leaves
a file that opens. As long as a run can be resumed, its checkpoint is in the folder `out.h5.checkpoint` beside the file.

This page is generated from the code by `python docs/build.py`.
"""

ROUNDS = """One row per round. A column that does not apply to a run is absent; an algorithm may add columns of its own.
A round that is not evaluated (`evaluate.every`) has NaN for what evaluating gives. *Amount*: the value belongs to that
round alone, or has added up since the start; otherwise it is the state after the round. *Better*: which of two values
is the better one, where that can be said."""

ATTRIBUTES = {
    "format": "`mpifed-result`",
    "format_version": "version of this layout",
    "mpifed_version": "version of mpifed",
    "config": "the complete experiment file, TOML, with every default",
    "changed": "the keys of `config` that are not at their defaults, separated by spaces",
    "notes": "what the run said of itself before its first round, one sentence a line",
    "privacy": "`guaranteed:` or `none:`, and what the uploads guarantee or why they do not; absent: no claim is made",
    "rounds_redrawn": "rounds that interruptions made run again with new noise; the privacy spent counts them",
    "seed": "seed of all random numbers, except noise from the system's entropy",
    "status": "`running`, `finished`, `stopped` (by a signal) or `failed`",
    "stop_reason": "the stop rule that ended the run, with its numbers, or the error",
    "started": "ISO 8601, UTC",
    "finished": "ISO 8601, UTC",
    "resumed": "one line per resumption: when, after which round, on how many ranks",
    "clients": "number of clients m",
    "ranks": "number of MPI processes",
    "mpi_library": "the MPI library, or `none`",
    "block_bytes": "bytes of samples that were computed on at a time; no result depends on it",
    "block_bytes_because": "the reason for this size: the experiment, or the cache of the machine of rank 0",
    "reduction": "how sums over clients reached rank 0, and up to how many numbers; written when the run ends",
    "host": "machine of rank 0",
    "python": "version of Python",
    "numpy": "version of numpy",
    "kernels": "what computed: `numpy`, or `compiled` kernels, which may differ from numpy in the last bits",
    "numba": "version of numba, which compiled the kernels; absent with `numpy`",
    "graph_edges": "edges of the graph, as it was drawn first; only with `[graph]`, like the three that follow",
    "graph_parts": "connected parts of this graph; 1: it is connected",
    "spectral_gap": "1 − max(|λ₂|, |λ_m|) of its weights W; NaN where eigenvalues were not found in reasonable time",
    "least_eigenvalue": "λ_m, the least eigenvalue of W",
    "command_line": "the command that started the run",
    "git_commit": "git commit of the current folder, if it has one",
}


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A table of Markdown, with an empty line before it."""
    cells = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    rule = ["---"] * len(head)
    return ["", *("| " + "".join(f"{cell} | ".lstrip() for cell in row).rstrip() for row in [head, rule, *cells])]


def options(cls: type[Table], leave: Sequence[str] = ()) -> list[str]:
    """The options of a class."""
    rows = [option(field) for field in msgspec.structs.fields(cls) if field.name not in leave]
    return table(
        ("key", "default", "meaning"), [(f"`{key}`", f"`{default}`", meaning) for key, default, meaning in rows]
    )


def entry(name: str, cls: type[Table]) -> list[str]:
    """One member: its module, its paper if it has one, its docstring, its options."""
    module = f"[`{cls.__module__}`](../{cls.__module__.replace('.', '/')}.py)"
    if (source := paper(cls)) is not None:
        module += ": " + source.citation.replace(source.number, f"[{source.number}]({source.link})")
    lines = ["", f"### {name}", "", module, "", "```text", inspect.getdoc(cls) or "", "```"]
    return lines + (options(cls) if msgspec.structs.fields(cls) else [])


def combinations() -> list[str]:
    """Which algorithm runs on which problem, and why not."""
    found = matrix()
    lines = ["", "## algorithms and problems", "", "Which algorithm runs on which problem, with default options."]
    lines += table(("", *found.problems), [(f"`{name}`", *cells) for name, cells in found.cells.items()])
    lines += ["", *(f"- {mark} {reason}." for mark, reason in found.notes.items())]
    return [*lines, "", "With other options:", "", *(f"- {text}." for text in found.options)]


def reference() -> str:
    """docs/reference.md."""
    kinds = ", ".join(f"[{kind}](#{kind})" for kind in KINDS)
    lines = [
        REFERENCE,
        f"Contents: [the experiment](#the-experiment), [algorithms and problems](#algorithms-and-problems), {kinds}.",
        "",
        "## The experiment",
        "",
        "Keys at the top of the file; every key has a default.",
    ]
    lines += options(Experiment, ("data", "problem", "algorithm", "selection", *TABLES))
    for name, cls in TABLES.items():
        lines += entry(f"[{name}]", cls)
    lines += combinations()
    for kind, family in KINDS.items():
        lines += ["", f"## {kind}", "", f"`{PLACES[kind]}.name`, by default `{family.default}`."]
        for name in family.choices:
            lines += entry(name, family.member(name, kind))
    return "\n".join(lines) + "\n"


def group(name: str, text: str, members: Mapping[str, Column]) -> list[str]:
    """A group of the result file and its datasets."""
    rows = [
        (f"`{key}`", column.unit, "integer" if column.integer else "", column.description)
        for key, column in members.items()
    ]
    return ["", f"## {name}", "", text, *table(("dataset", "units", "type", "description"), rows)]


def rounds() -> list[str]:
    """The group /rounds, with how each column adds up and which value is better."""
    better = {1: "higher", -1: "lower", 0: ""}
    spans = {"state": "", "round": "of the round", "total": "since the start"}
    rows = [
        (
            f"`{key}`",
            column.unit,
            "integer" if column.integer else "",
            spans[column.span],
            better[column.better],
            column.description,
        )
        for key, column in {"round": columns.SCALES["round"], **columns.COLUMNS}.items()
    ]
    head = ("dataset", "units", "type", "amount", "better", "description")
    return ["", "## /rounds", "", ROUNDS, *table(head, rows)]


def results() -> str:
    """docs/results.md."""
    lines = [RESULTS, "## Attributes of the file"]
    lines += table(("attribute", "meaning"), [(f"`{key}`", meaning) for key, meaning in ATTRIBUTES.items()])
    lines += rounds()
    lines += group(
        "/ranks",
        "One row per MPI process; rank 0 is the server.",
        {"rank": columns.SCALES["rank"], **group_columns.RANKS},
    )
    lines += group("/clients", "One row per client.", {"client": columns.SCALES["client"], **group_columns.CLIENTS})
    lines += group(
        "/model",
        "`personal` (client, parameter) is stored with `record.personal = true`.",
        {"parameter": columns.SCALES["parameter"], **group_columns.MODEL},
    )
    lines += group(
        "/models",
        "The server's model after every `record.models`-th round, from round 0, and the last one. The group is absent "
        'where `record.models = 0`, the default. `mpifed.load("out.h5").models` is a dictionary of both.',
        group_columns.MODELS,
    )
    lines += group(
        "/selection",
        f"(round, slot). Where all of more than {columns.ALL_LISTED} clients are selected their ids are "
        f"not listed: {columns.ALL} stands for them.",
        {"slot": columns.SCALES["slot"], "selection": columns.SELECTION},
    )
    lines += group(
        "/certificate",
        "With `algorithm.certify`: the conditions of the method's theorem, `name` to `source`, and what it proves, "
        "`bound` to `first`; `Result.certificate` has both. The attributes `theorem`, `remarks`, `at` and those of the "
        "constants belong to them; see [certify.md](certify.md).",
        CERTIFICATE,
    )
    return "\n".join(lines) + "\n"


def pages() -> dict[str, str]:
    """File name -> text of the pages that are written from the code."""
    field = runpy.run_path(str(Path(__file__).with_name("field.py")))["field"]
    return {"reference.md": reference(), "results.md": results(), "field.md": field()}


if __name__ == "__main__":
    for file, text in pages().items():
        Path(__file__).with_name(file).write_text(text, "utf-8")
