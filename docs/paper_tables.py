"""docs/studies/tables-*.md: the numbers that a paper prints beside ours, cell by cell, from committed rows."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

Table = Callable[[Sequence[str], Sequence[Sequence[str]]], list[str]]
INTRODUCTION = """# {title}: the paper's numbers beside ours

*For readers of the paper who want each number. Which paper, and what its numbers say: [{folder}]({folder}.md); counted
in [outcomes](outcomes.md#{anchor}).*

A line is a cell of a table or a point of a figure of the paper. *paper*: its number, in braces that of an independent
program. *here*: mean ± standard deviation of our seeds (the median where the text says so). *95 %*: where the mean of
as many runs as the paper's lies, by our seeds. *verdict*: = agrees; ° agrees, but a setting was chosen after looking
at the number; ≟ cannot tell the methods apart; ✗ off; ? open, too few seeds or too wide an interval; † on other data
than the paper's, not judged; – not available; seconds are of different machines and only their ratio stands here.
Methods without a number in the paper: `python -m benchmarks tables {folder}`."""


def pages(table: Table, outcomes: dict[str, Any]) -> dict[str, list[str]]:
    """Path in docs -> lines of the page of each paper; ``outcomes`` is docs/outcomes.py."""
    told = tomllib.loads((Path(__file__).parent / "outcomes.toml").read_text("utf-8"))["paper"]
    return {
        f"studies/tables-{folder}.md": list(lines(table, outcomes, folder, told[folder]))
        for folder in told
        if folder != "beyond"
    }


def lines(table: Table, outcomes: dict[str, Any], folder: str, paper: dict[str, str]) -> Iterator[str]:
    """The page of a paper."""
    from benchmarks import report, tables, tally

    title = paper["title"]
    yield INTRODUCTION.format(title=title, folder=folder, anchor=outcomes["anchor"](title))
    for name, one in outcomes["counted"]().items():
        if name.split("/")[0] != folder or not one.rows.runs:
            continue
        found = [(block, list(tables.compared(one, block))) for block in one.bench.block]
        claims = tally.said(one)
        if not claims and not any(made for _, made in found):
            continue
        yield from (
            "",
            f"## {one.bench.title}",
            "",
            f"{one.bench.source}; {outcomes['link'](name)}; {report.behind(one)}.",
        )
        for block, made in found:
            if made:
                yield from ("", f"### {block.title}")
                yield from ["", f"On {block.surrogate}."] * bool(block.surrogate)
                yield from ["", "Medians in place of means."] * (block.center == "median")
            for of in made:
                yield from table(of.head, of.rows)
            notes = dict.fromkeys(note for of in made and tables.tables(one, block) for note in of.notes)
            yield from ("", *(f"- {note}" for note in notes)) if notes else ()
        yield from ["", "What the paper says of it:", ""] * bool(claims)
        yield from (f"- {claim}" for claim in claims)
