"""The page docs/studies/outcomes.md: outcomes.toml has verdicts and counts, the benchmark files have the reasons."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
BENCHMARKS = HERE.parent / "benchmarks"
KINDS = {
    "agree": "cells agree",
    "in sample": "in sample",
    "alike": "cannot tell apart",
    "off": "off",
    "open": "open",
    "not available": "not available",
    "hold": "claims hold",
    "tie": "tie",
    "fail": "fail",
    "not decided": "not decided",
}  # key of a count -> head of its column, which stands where a count has it

Table = Callable[[Sequence[str], Sequence[Sequence[str]]], list[str]]


def lines(table: Table) -> list[str]:
    """The page; ``table`` writes one in Markdown."""
    told = tomllib.loads((HERE / "outcomes.toml").read_text("utf-8"))
    found = [told["introduction"].strip(), ""]
    found += [
        f"- **[{paper['title']}](#{anchor(paper['title'])})**: {paper['verdict'].strip()}"
        for folder, paper in told["paper"].items()
    ]
    found += ["", "## Counts", "", told["counting"].strip()]
    found += counts(table, told["paper"].values())
    for folder, paper in told["paper"].items():
        found += ["", f"## {paper['title']}", "", f"![{paper['caption']}](pictures/{folder}.png)", ""]
        found += [paper["more"].strip(), *reasons(folder)]
    return found


def anchor(title: str) -> str:
    """The anchor of a heading."""
    return title.lower().replace(" ", "-")


def counts(table: Table, papers: Iterable[dict[str, Any]]) -> list[str]:
    """The table of counts, with their sums."""
    found = {f"{paper['title']}, {name}": own for paper in papers for name, own in paper["count"].items()}
    kinds = [kind for kind in KINDS if any(kind in own for own in found.values())]
    rows = [[name, str(own["seeds"]), *(str(own.get(kind, "")) for kind in kinds)] for name, own in found.items()]
    sums = [str(sum(own.get(kind, 0) for own in found.values())) for kind in kinds]
    return table(["", "seeds", *(KINDS[kind] for kind in kinds)], [*rows, ["all", "", *sums]])


def reasons(folder: str) -> Iterator[str]:
    """What is off, open, a tie or fails in the benchmarks of a folder, and why: one line for each reason."""
    for file in sorted((BENCHMARKS / folder).glob("*.toml")):
        bench = tomllib.loads(file.read_text("utf-8"))
        found: dict[str, list[str]] = {}
        for what, why in [*cells(bench), *claims(bench)]:
            found.setdefault(" ".join(why.split()).rstrip("."), []).append(what)
        if found:
            name = bench["title"].partition(": ")[0]
            yield from ("", f"**[{name}](../../benchmarks/{folder}/{file.name})**", "")
            yield from (f"- {'; '.join(what)}: {literal(why)}." for why, what in found.items())


def cells(bench: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Block and rows of cells that are off, open or in sample, and why; rows of one reason stand together."""
    for block, (key, kind) in product(bench["block"], {"why": "", "fitted": "in sample: "}.items()):
        found: dict[tuple[str, str], list[str]] = {}
        for name, why in block.get(key, {}).items():
            for measure, reason in (why if isinstance(why, dict) else {"": why}).items():
                found.setdefault((measure, reason), []).append(name)
        for (measure, reason), names in found.items():
            yield f"{block['name']}, {', '.join(names)}{', ' * bool(measure)}{measure}", f"{kind}{reason}"


def claims(bench: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Sentences that do not hold everywhere, and why."""
    for claim in bench.get("claim", []):
        if claim.get("why"):
            yield f"“{claim['text'].strip().rstrip('.')}”", claim["why"]


def literal(text: str) -> str:
    """Text in which Markdown finds no emphasis."""
    return text.replace("*", "\\*").replace("<", "\\<")
