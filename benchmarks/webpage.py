"""The report as one HTML file: contents beside it, headings that can be linked to, tables that sort by a click."""

from html import escape
from itertools import pairwise
from typing import Any

PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>mpifed: five papers, rerun</title><style>
body {{ font: 15px/1.45 system-ui, sans-serif; margin: 0; color: #222; display: flex }}
nav {{ flex: 0 0 13em; height: 100vh; position: sticky; top: 0; overflow-y: auto; padding: 1em; box-sizing: border-box;
  border-right: 1px solid #ddd; font-size: 13px }}
nav b {{ display: block; margin-top: .8em }} nav a {{ display: block; color: inherit; text-decoration: none }}
nav a:hover {{ text-decoration: underline }}
main {{ flex: 1; min-width: 0; max-width: 75em; padding: 1em 2em }}
table {{ border-collapse: collapse; display: block; overflow-x: auto; font-size: 13px; margin: 1em 0 }}
th, td {{ border-bottom: 1px solid #ddd; padding: .25em .7em; text-align: left; vertical-align: top }}
th {{ cursor: pointer; white-space: nowrap }} th:empty {{ cursor: default }}
th[aria-sort=ascending]::after {{ content: " ▲" }} th[aria-sort=descending]::after {{ content: " ▼" }}
img {{ max-width: 100% }} code {{ background: #f4f4f4 }} pre {{ overflow-x: auto }}
h2 {{ border-top: 2px solid #222; padding-top: .6em; margin-top: 2em }} li {{ margin: .3em 0 }}
@media (max-width: 60em) {{
  body {{ display: block }} nav {{ height: auto; position: static; border: 0 }} main {{ padding: 1em }}
}}
@media print {{ nav {{ display: none }} }}
</style></head><body>
<nav aria-label="Contents">{contents}</nav>
<main>
{body}
</main>
<script>{script}</script>
</body></html>
"""
SCRIPT = """
"use strict";
const number = (text) => parseFloat((text.match(/-?\\d+(\\.\\d+)?(e-?\\d+)?/) || ["NaN"])[0]);
function compare(a, b) {
  const [x, y] = [number(a), number(b)];
  if (Number.isNaN(x) !== Number.isNaN(y)) return Number.isNaN(x) ? 1 : -1;
  return x - y || a.localeCompare(b, undefined, { numeric: true });
}
for (const head of document.querySelectorAll("th")) {
  head.title = "click to sort";
  head.onclick = () => {
    const body = head.closest("table").tBodies[0];
    const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    const text = (row) => row.cells[head.cellIndex].textContent;
    const rows = [...body.rows].sort((a, b) => sign * compare(text(a), text(b)));
    for (const other of head.parentElement.cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    body.append(...rows);
  };
}
"""


def webpage(markdown: str) -> str | None:
    """The page; None if markdown-it-py is not installed."""
    try:
        from markdown_it import MarkdownIt
    except ImportError:
        return None
    parser = MarkdownIt("commonmark").enable("table")
    tokens = parser.parse(markdown)
    headings = anchored(tokens)
    body = parser.renderer.render(tokens, parser.options, {})
    return PAGE.format(contents=contents(headings), body=body, script=SCRIPT)


def anchored(tokens: list[Any]) -> list[tuple[int, str, str]]:
    """Give every heading the anchor that GitHub gives to it; level, anchor and text of each."""
    found, used = list[tuple[int, str, str]](), dict[str, int]()
    for token, inline in pairwise(tokens):
        if token.type == "heading_open":
            name = anchor(inline.content)
            used[name] = used.get(name, -1) + 1
            name += f"-{used[name]}" * (used[name] > 0)
            token.attrSet("id", name)
            found.append((int(token.tag[1]), name, inline.content))
    return found


def anchor(heading: str) -> str:
    """The anchor that GitHub gives to a heading."""
    return "".join(sign for sign in heading.lower() if sign.isalnum() or sign in " -_").replace(" ", "-")


def contents(headings: list[tuple[int, str, str]]) -> str:
    """Links to the benchmarks, under the name of their paper."""
    parts, group = list[str](), ""
    for level, name, text in headings:
        if level > 2:
            continue
        paper, _, bench = text.partition(": ")
        if level == 2 and paper != group:
            parts.append(f"<b>{escape(paper)}</b>")
            group = paper
        parts.append(f'<a href="#{escape(name)}">{escape(bench.partition("/")[2] or text)}</a>')
    return "\n".join(parts)
