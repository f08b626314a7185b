"""The report on all benchmarks: one Markdown page with pictures and, where markdown-it-py is installed, the same as HTML."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks import draw, verdict
from benchmarks.bench import HERE, Bench, runs
from benchmarks.outcome import Outcome, collect
from benchmarks.tables import LEGEND, Table, claims, lacking, markdown, tables, terminal
from mpifed.cli.describe import versions
from mpifed.core.errors import UserError
from mpifed.report import style

ROOT = HERE.parent
PAPERS = {
    "fedadmm": "FedADMM",
    "fedgia": "FedGiA",
    "fedepm": "FedEPM",
    "flame": "FLAME",
    "feddcd": "FedDCD",
    "beyond": "What no paper shows",
}
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>mpifed: five papers, rerun</title><style>
body {{ font: 15px/1.45 system-ui, sans-serif; max-width: 75em; margin: 2em auto; padding: 0 1em; color: #222 }}
table {{ border-collapse: collapse; display: block; overflow-x: auto; font-size: 13px; margin: 1em 0 }}
th, td {{ border-bottom: 1px solid #ddd; padding: .25em .7em; text-align: left; vertical-align: top }}
img {{ max-width: 100% }} code {{ background: #f4f4f4 }} h2 {{ border-top: 2px solid #222; padding-top: .6em; margin-top: 2em }}
</style></head><body>
{body}
</body></html>
"""


class Told(NamedTuple):
    """What the report has of a benchmark; ``lack``: why it has no pictures."""

    name: str
    title: str
    seeds: int
    summary: str
    runs: int
    section: str
    lack: str


def tell(name: str, bench: Bench, seeds: int, folder: Path, failed: dict[str, str]) -> Told:
    """Read the results of a benchmark, draw and tell it."""
    outcome = collect(name, bench, seeds, runs(bench, seeds, name), folder, failed)
    _, lack = pictures(outcome, folder)
    number = sum(map(len, outcome.runs.values()))
    return Told(name, bench.title, seeds, outcome.summary(), number, section(outcome, folder), lack)


def pictures(outcome: Outcome, folder: Path) -> tuple[list[Path], str]:
    """Draw what the benchmark wishes for into folder/<benchmark>/; where the pictures are, and why there are none."""
    made = list[Path]()
    for wish in outcome.bench.figure:
        try:
            figure = draw.figure(outcome, wish)
        except UserError as lack:  # no matplotlib: the tables are there all the same
            return made, str(lack)
        if figure is not None:
            path = folder / outcome.name / f"{wish.name}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            style.save(figure, path, True)
            made.append(path)
    return made, ""


def screen(outcome: Outcome) -> str:
    """A benchmark as a terminal shows it."""
    bench = outcome.bench
    parts = [f"{bench.title}\n{bench.source}; {outcome.seeds} draws\n{LEGEND}"]
    for block in bench.block:
        if reason := lacking(outcome, block):
            parts.append(f"{block.name}: not reachable here: {reason}")
        elif found := tables(outcome, block):
            parts.append("\n\n".join([block.name, *map(terminal, found)]))
    told = claims(outcome)
    if told is not None:
        width = 100
        who = "theory" if outcome.name.startswith("beyond/") else "the paper"
        parts.append(
            f"What {who} says of it:\n"
            + "\n".join(
                f"  {row[2]:<18} {row[0][:width]}" + (f"\n{'':21}{row[3]}" if row[3] else "") for row in told.rows
            )
        )
    return "\n\n".join([*parts, bench.different.strip(), outcome.summary()])


def write(told: Sequence[Told], folder: Path, seconds: float) -> list[Path]:
    """Write report.md and, where it can be, report.html into ``folder``; where they are."""
    page = "\n\n".join([overview(told, folder, seconds), *(one.section for one in told)]) + "\n"
    files = [folder / "report.md"]
    files[0].write_text(page, "utf-8")
    try:
        from markdown_it import MarkdownIt
    except ImportError:
        return files
    files.append(folder / "report.html")
    files[1].write_text(PAGE.format(body=MarkdownIt("commonmark").enable("table").render(page)), "utf-8")
    return files


def overview(told: Sequence[Told], folder: Path, seconds: float) -> str:
    """The head of the report: how to read it, and a line a benchmark."""
    lines = [[f"[{one.name}](#{anchor(one.name)})", one.title, str(one.seeds), one.summary] for one in told]
    table = markdown(Table(["benchmark", "what", "draws", "outcome"], lines, []))
    number = sum(one.runs for one in told)
    return "\n\n".join(
        [
            "# The tables and figures of five papers, rerun",
            f"{number} runs of mpifed; the last command took {seconds / 60:.1f} min, results that were there already not counted.",
            f'How to read a cell: {LEGEND}. "Agrees" and "within the spread" are the 95 % intervals of Student\'s t for the '
            f"difference of two means and for one draw (`{link('judge', Path(verdict.__file__), folder)}`).",
            "From a number to its origin: the heading of a benchmark links its TOML, which has every setting and the paper's "
            "numbers; the last column of its tables names the result files, each with its complete configuration "
            "(`python -m mpifed show FILE`); the page of the paper tells which function is which equation.",
            table,
            f"<details><summary>Versions</summary>\n\n```\n{versions().strip()}\n```\n\n</details>",
        ]
    )


def section(outcome: Outcome, folder: Path) -> str:
    """A benchmark in the report."""
    bench, (paper, _) = outcome.bench, outcome.name.split("/")
    toml, page = HERE / f"{outcome.name}.toml", ROOT / "docs" / f"{paper}.md"
    runs = (folder / outcome.name).resolve()
    where = [
        f"{bench.source}",
        link("settings and the paper's numbers", toml, folder),
        link("result files", runs, folder),
        *([link("equations in the code", page, folder)] if page.exists() else []),
    ]
    parts = [
        f"## {PAPERS.get(paper, paper)}: {outcome.name}",
        f"**{bench.title}**",
        "; ".join(where) + ".",
        bench.about.strip(),
        f"**{outcome.summary()}**",
    ]
    for block in bench.block:
        if reason := lacking(outcome, block):
            parts.append(f"### {block.name}\n\nNot reachable here: {portable(reason)}.")
        elif found := tables(outcome, block):
            parts += [f"### {block.name}", *(markdown(filed(table, outcome, block.name)) for table in found)]
    told = claims(outcome)
    if told is not None:
        parts += [
            "### What the paper says of it" if paper != "beyond" else "### What theory says of it",
            markdown(told),
        ]
    for wish in bench.figure:
        path = folder / outcome.name / f"{wish.name}.png"
        if path.exists():
            parts.append(f"![{wish.title}]({os.path.relpath(path, folder)})")
    return "\n\n".join(filter(None, [*parts, bench.different.strip()]))


def filed(table: Table, outcome: Outcome, block: str) -> Table:
    """The table with a column that names the result files of a row, * for seed and column."""
    values = outcome.bench.values
    names = []
    for row in table.rows:
        own = next(path for cell, path in outcome.files.items() if cell.block == block and cell.row == row[0])
        key = "" if outcome.bench.columns is None else f"{outcome.bench.columns.short}-".lower()
        stem = own.rsplit("/", 1)[1]
        names.append(f"`{stem.split(key)[0]}{key}*-seed-*.h5`" if key and len(values) > 1 else f"`{stem}`")
    return Table(
        [*table.head, "files"], [[*row, name] for row, name in zip(table.rows, names, strict=True)], table.notes
    )


def portable(reason: str) -> str:
    """A reason without the folder of this machine's data."""
    folder = os.environ.get("MPIFED_DATA")
    return reason.replace(folder, "$MPIFED_DATA") if folder else reason


def link(words: str, path: Path, folder: Path) -> str:
    return f"[{words}]({os.path.relpath(path, folder.resolve())})"


def anchor(name: str) -> str:
    """What GitHub calls the heading of a benchmark."""
    paper = name.split("/")[0]
    heading = f"{PAPERS.get(paper, paper)}: {name}".lower()
    return "".join(c for c in heading if c.isalnum() or c in " -").replace(" ", "-")
