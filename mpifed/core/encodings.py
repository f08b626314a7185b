"""Marks of mathematics in output whose encoding lacks them: in ASCII instead, as in ||grad f||^2 for ‖∇f‖²."""

import codecs
import unicodedata
from typing import Any

ERRORS = "mpifed.ascii"  # name of the handler
MARKS = {
    **{"‖": "||", "∇": "grad ", "√": "sqrt", "∂": "d", "∞": "inf", "µ": "u", "ϱ": "rho", "½": "1/2", "¼": "1/4"},
    **{"−": "-", "·": "*", "×": "x", "±": "+-", "≤": "<=", "≥": ">=", "⪰": ">=", "≠": "!=", "≈": "~", "∝": "~"},
    **{"∈": " in ", "←": "<-", "→": "->", "⟨": "<", "⟩": ">", "⌈": "ceil(", "⌉": ")", "⌊": "floor(", "⌋": ")"},
    **{"…": "...", "–": "-", "—": "-", "′": "'", "▕": "|", "▏": "|", "Ł": "L", "ł": "l"},
    **dict(zip("▁▂▃▄▅▆▇█", "_.,-=+*#", strict=True)),
}
GREEK = "GREEK SMALL LETTER ", "GREEK CAPITAL LETTER "


def replaced(error: Any) -> tuple[str, int]:
    """The handler: what stands for the characters that an encoding lacks, and where to go on."""
    text = error.object[error.start : error.end]
    before = [super_or_sub(c) for c in error.object[max(error.start - 1, 0) : error.start]]
    parts = []
    for c in text:
        sign = super_or_sub(c)
        # one sign for all digits of an exponent: 10^-12
        parts.append(in_ascii(c) if [sign] == before else sign + in_ascii(c))
        before = [sign]
    return "".join(parts), error.end


def super_or_sub(c: str) -> str:
    """^ for a superscript, _ for a subscript."""
    kind = unicodedata.decomposition(c).partition(" ")[0]
    return {"<super>": "^", "<sub>": "_"}.get(kind, "")


def in_ascii(c: str) -> str:
    """A character in ASCII: a mark, the name of a Greek letter, a letter without its accent; else its escape."""
    if c in MARKS:
        return MARKS[c]
    name = unicodedata.name(c, "")
    for front, form in zip(GREEK, (str.lower, str.capitalize), strict=True):
        if name.startswith(front):
            return form(name.removeprefix(front).partition(" ")[0]).replace("amda", "ambda")
    parts = unicodedata.normalize("NFKD", c)
    plain = "".join(MARKS.get(part, part) for part in parts).encode("ascii", "ignore").decode()
    return plain or ("" if unicodedata.combining(c) else c.encode("ascii", "backslashreplace").decode())


codecs.register_error(ERRORS, replaced)
