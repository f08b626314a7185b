"""Examples of docstrings as blocks of code on the page of the API: Markdown takes >>> for a quotation."""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^( *)(>>> .*(?:\n(?! *$).+)*)", re.M)


class Fenced(griffe.Extension):
    """Put each example, from its first >>> to the next empty line, between fences."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = EXAMPLE.sub(fenced, obj.docstring.value)


def fenced(found: re.Match[str]) -> str:
    lines = [line.removeprefix(found[1]) for line in found[2].splitlines()]
    return "\n".join(["```pycon", *lines, "```"])
