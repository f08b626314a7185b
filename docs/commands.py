"""Blocks of the site: long commands are broken as a shell allows it, and docstrings of the reference are wrapped.

MkDocs calls on_page_markdown, see .mkdocs.yml. On a forge, and where a page is copied from, lines stay as they are.
"""

import re
from itertools import pairwise
from typing import Any

WIDE = 84  # characters that a box has room for
BASH = re.compile(r"(?<=^```bash\n).*?(?=^```$)", re.M | re.S)
COMMENT = re.compile(r"^(?P<command>[^'\"#]+\S) +(?P<comment># .*)$")


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Break the commands of a page; let site.css wrap docstrings, which are prose, but not what a command printed."""
    if page.file.src_uri.startswith("reference/"):
        markdown = markdown.replace("\n```text\n", "\n```{.text .prose}\n")
    return BASH.sub(lambda block: broken(block[0]), markdown)


def broken(block: str) -> str:
    """Return the commands of a block with lines of at most WIDE characters, where a line has a place to be broken."""
    lines = []
    quote = ""
    for line in block.splitlines():
        before = quote
        quote = quoted(line, quote)
        found = COMMENT.match(line) if len(line) > WIDE and not before else None
        if found:
            lines.append(found["comment"])
            line = found["command"]
        lines += pieces(line, before)
    return "".join(f"{line}\n" for line in lines)


def pieces(line: str, quote: str) -> list[str]:
    """Return a line in pieces that a backslash joins; ``quote`` is the quotation mark it begins within, or ""."""
    found = []
    while quote and len(line) > WIDE and (at := line.rfind("}, {", 0, WIDE)) > 0:
        # values of a grid, of which some stand on lines of their own already
        found.append(line[: at + 2])
        line = f"    {line[at + 3 :]}"
    while len(line) > WIDE:
        # no space of the indentation, of a quotation or before a comment
        indent = len(line) - len(line.lstrip())
        spaces = [at for at in range(indent, WIDE - 1) if line[at] == " " and not quoted(line[:at], quote)]
        comment = line.find(" # ")
        spaces = [at for at in spaces if comment < 0 or at < comment]
        if not spaces:
            break
        at = spaces[-1]
        found.append(f"{line[:at].rstrip()} \\")
        line = f"    {line[at:].lstrip()}"
        quote = ""
    return [*found, line]


def quoted(text: str, quote: str) -> str:
    """Return the quotation mark that is open after a text which begins within ``quote``; "" where none is."""
    for before, sign in pairwise(f" {text}"):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "'\"":
            quote = sign
        elif before == " " and sign == "#":
            break
    return quote
