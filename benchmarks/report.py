"""The report on all benchmarks: a Markdown page with pictures, and the same as HTML if markdown-it-py is installed."""

import os
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import NamedTuple
from urllib.parse import quote

from benchmarks import pictures, verdict
from benchmarks.bench import HERE, Bench
from benchmarks.grid import runs
from benchmarks.outcome import Outcome, collect
from benchmarks.sentences import literal, said
from benchmarks.tables import LEGEND, Table, lacking, markdown, tables, terminal
from benchmarks.tally import Tally, counted, remaining, repetitions, tally
from benchmarks.webpage import anchor, webpage
from mpifed import UserError
from mpifed.cli.describe import versions
from mpifed.report import style

ROOT = HERE.parent
PAPERS = {
    "fedadmm": "FedADMM",
    "fedgia": "FedGiA",
    "fedepm": "FedEPM",
    "flame": "FLAME",
    "feddcd": "FedDCD",
    "beyond": "Beyond the papers",
}


class Section(NamedTuple):
    """The part of the report on one benchmark; ``lack``: why it has no pictures."""

    name: str
    tally: Tally
    summary: str
    runs: int
    text: str
    lack: str


def section(name: str, bench: Bench, seeds: int, folder: Path, failed: dict[str, str]) -> Section:
    """Read the results of a benchmark, draw its pictures and write its part of the report."""
    outcome = collect(name, bench, seeds, runs(bench, seeds, name), folder, failed)
    _, lack = save_pictures(outcome, folder)
    number = len(outcome.rows.runs)
    return Section(name, tally(outcome), outcome.summary(), number, markdown_section(outcome, folder), lack)


def counts(name: str, bench: Bench, seeds: int, folder: Path, failed: dict[str, str]) -> Tally:
    """Read the results of a benchmark and count its cells and claims."""
    return tally(collect(name, bench, seeds, runs(bench, seeds, name), folder, failed))


def save_pictures(outcome: Outcome, folder: Path) -> tuple[list[Path], str]:
    """Save the pictures of a benchmark in folder/<benchmark>/. Returns their paths, and why some are missing."""
    made = list[Path]()
    for wish in outcome.bench.figure:
        try:
            figure = pictures.figure(outcome, wish)
        except UserError as lack:  # matplotlib is missing; the tables do not need it
            return made, str(lack)
        if figure is not None:
            path = folder / outcome.name / f"{wish.name}.png"
            path.parent.mkdir(parents=True, exist_ok=True)
            style.save(figure, path, True)
            made.append(path)
    return made, ""


def screen(outcome: Outcome) -> str:
    """A benchmark as text for a terminal."""
    bench = outcome.bench
    parts = [f"{bench.title}\n{bench.source}\n{behind(outcome)}\n{LEGEND}"]
    for block in bench.block:
        if reason := lacking(outcome, block):
            parts.append(f"{block.title}: not available: {reason}")
        elif found := tables(outcome, block):
            parts.append("\n\n".join([block.title, *map(terminal, found)]))
    if outcome.findings:
        parts.append(
            "\n".join(
                [
                    f"What {speaker(outcome)} says:",
                    *(fill(line, 110, initial_indent="  ", subsequent_indent="    ") for line in said(outcome)),
                ]
            )
        )
    return "\n\n".join([*parts, bench.different.strip(), outcome.summary()])


def behind(outcome: Outcome) -> str:
    """How many runs our numbers and the paper's are means of."""
    seeds = repetitions(outcome)
    ours = f"{seeds} seed" + "s" * (seeds != "1")
    found = list(dict.fromkeys(outcome.bench.trials_of(block) for block in outcome.bench.block if block.paper))
    theirs = [
        f"{count} run{'s' * (count > 1)}{'' if printed else ' (assumed, not printed)'}" for count, printed in found
    ]
    return f"our numbers: {ours}" + (f"; the paper's: {' or '.join(theirs)}" if theirs else "")


def speaker(outcome: Outcome) -> str:
    """Whose claims a benchmark checks."""
    return "theory" if outcome.name.startswith("beyond/") else "the paper"


def write(sections: Sequence[Section], folder: Path, seconds: float) -> list[Path]:
    """Write report.md and, if markdown-it-py is installed, report.html into ``folder``. Returns their paths."""
    page = "\n\n".join([overview(sections, folder, seconds), *(one.text for one in sections)]) + "\n"
    files = [folder / "report.md"]
    files[0].write_text(page, "utf-8")
    if (html := webpage(page)) is not None:
        files.append(folder / "report.html")
        files[1].write_text(html, "utf-8")
    return files


def overview(sections: Sequence[Section], folder: Path, seconds: float) -> str:
    """The head of the report: one line for each benchmark, how to read it, and what is off or open."""
    tallies = [one.tally for one in sections]
    number = sum(one.runs for one in sections)
    return "\n\n".join(
        [
            "# The tables and figures of five papers, rerun",
            counted(tallies, lambda name: f"[{name}](#{anchor(heading(name))})"),
            f"{number} runs of mpifed. The last command took {seconds / 60:.1f} min, existing results not counted.",
            f"How to read a cell: {LEGEND}. "
            f"The intervals have level 95 % ({link('code', Path(verdict.__file__), folder)}): up to one cell in twenty "
            "is off by chance.",
            "How to trace a number: each benchmark links its TOML file with every setting and the paper's numbers. "
            "The last column of its tables names the result files, which contain the complete configuration "
            "(`python -m mpifed show FILE`). The page of the paper says which function is which equation.",
            f"<details><summary>What is off, open or a tie, and why</summary>\n\n{remaining(tallies)}\n\n</details>",
            f"<details><summary>Versions</summary>\n\n```\n{versions().strip()}\n```\n\n</details>",
        ]
    )


def markdown_section(outcome: Outcome, folder: Path) -> str:
    """The part of the report on one benchmark, as Markdown."""
    bench, (paper, _) = outcome.bench, outcome.name.split("/")
    toml = HERE / f"{outcome.name}.toml"
    page = ROOT / "docs" / "studies" / f"{paper}.md"
    runs = (folder / outcome.name).resolve()
    links = [bench.source, link("settings and the paper's numbers", toml, folder), link("result files", runs, folder)]
    if page.exists():
        links.append(link("equations in the code", page, folder))
    parts = [
        f"## {heading(outcome.name)}",
        f"**{bench.title}**",
        "; ".join(links) + ".",
        f"{behind(outcome).capitalize()}." if bench.measures else "",
        bench.about.strip(),
        f"**{outcome.summary()}**",
    ]
    for block in bench.block:
        if reason := lacking(outcome, block):
            parts.append(f"### {block.title}\n\nNot available: {portable(reason)}.")
        elif found := tables(outcome, block):
            parts += [f"### {block.title}", *(markdown(with_files(table, outcome, block.name)) for table in found)]
    if outcome.findings:
        claims = "\n".join(f"- {literal(line)}" for line in said(outcome))
        parts += [f"### What {speaker(outcome)} says", claims]
    for wish in bench.figure:
        path = folder / outcome.name / f"{wish.name}.png"
        if path.exists():
            parts.append(f"![{wish.title}]({quote(os.path.relpath(path, folder))})")
    return "\n\n".join(filter(None, [*parts, bench.different.strip()]))


def heading(name: str) -> str:
    """The heading of a benchmark."""
    paper = name.split("/")[0]
    return f"{PAPERS.get(paper, paper)}: {name}"


def with_files(table: Table, outcome: Outcome, block: str) -> Table:
    """The table with a column that names the result files of each row, with * for seed and column."""
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
    """A reason with the data folder of this machine replaced by $MPIFED_DATA."""
    folder = os.environ.get("MPIFED_DATA")
    return reason.replace(folder, "$MPIFED_DATA") if folder else reason


def link(words: str, path: Path, folder: Path) -> str:
    return f"[{words}]({quote(os.path.relpath(path, folder.resolve()))})"
