"""What methods, settings and columns are called in tables and pictures: as in print, or as the user says."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mpifed.core.errors import UserError, unknown
from mpifed.core.methods import METHODS
from mpifed.report.tables import escaped

SPELLINGS = ("alpha", "beta", "delta", "epsilon", "eta", "gamma", "kappa", "lambda", "mu", "nu", "rho", "sigma", "tau")
GREEK = dict(zip(SPELLINGS, "αβδεηγκλμνρστ", strict=True))
SPELT = {"lam": "lambda", "eps": "epsilon"}  # options whose letter has another name in Python
LOWERED = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def method(name: str) -> str:
    """A method as its paper writes it; a class of the user's own by the name of the class."""
    return METHODS[name].title if name in METHODS else name.rsplit(":", 1)[-1]


def letter(name: str) -> tuple[str, str] | None:
    """The letter, with its index, that a setting has in print and in LaTeX: k0 -> k₀; None for a word."""
    stem = name.rstrip("0123456789")
    index = name[len(stem) :]
    stem = SPELT.get(stem, stem)
    if stem not in GREEK and not (len(stem) == 1 and stem.isalpha()):
        return None
    latex = rf"\{stem}" if stem in GREEK else stem
    return GREEK.get(stem, stem) + index.translate(LOWERED), f"${latex}_{{{index}}}$" if index else f"${latex}$"


def setting(name: str) -> str:
    found = letter(name)
    if found:
        return found[0]
    return name if "." in name else name.replace("_", " ")


def methods_of(values: Iterable[str]) -> dict[str, str]:
    """The names in print of those methods that would be called the same: classes of one name, with their files."""
    values = dict.fromkeys(values)
    found = {value: method(value) for value in values}
    for places in (os.path.basename, str):
        alike = Counter(found.values())
        for value in values:
            place = value.rpartition(":")[0]
            if alike[found[value]] > 1 and place:
                found[value] = f"{method(value)} ({places(place)})"
    return {value: name for value, name in found.items() if name != method(value)}


class Names(NamedTuple):
    """Names as in print, except those that the user ``renamed``: old -> new; ``methods`` that need more than a name."""

    renamed: Mapping[str, str] = {}
    methods: Mapping[str, str] = {}

    def of(self, printed: str, *spellings: str) -> str:
        """The new name of something with these spellings; ``printed`` where it has none."""
        return next((self.renamed[name] for name in (*spellings, printed) if name in self.renamed), printed)

    def setting(self, key: str, short: str) -> str:
        return self.of(setting(short), key, short)

    def latex(self, key: str, short: str) -> str:
        found = letter(short)
        new = self.setting(key, short)
        return found[1] if found and new == found[0] else escaped(new)

    def value(self, key: str, value: str) -> str:
        return self.of(self.methods.get(value) or method(value) if key == "algorithm" else value, value)

    def part(self, key: str, short: str, value: str) -> str:
        usual = f"{setting(short)} = {value}"
        printed = f"{self.setting(key, short)} = {self.value(key, value)}"
        return self.of(printed, f"{key}={value}", f"{short}={value}", usual)


AS_PRINTED = Names()


def renames(words: Sequence[str], known: Iterable[str]) -> Names:
    """The names that ``OLD=NEW`` asks for. OLD, one of ``known``, may contain =. UserError for one that is not."""
    known = dict.fromkeys(known)
    found: dict[str, str] = {}
    for word in words:
        if "=" not in word.strip("="):
            raise UserError(f"--rename {word} is wrong: it must be OLD=NEW, for example fedgia=ours")
        splits = [(word[:index].strip(), word[index + 1 :].strip()) for index, sign in enumerate(word) if sign == "="]
        right = [(old, new) for old, new in splits if old in known and new]
        if not right:
            unknown("name for --rename", splits[0][0], known)
        old, new = right[-1]
        found[old] = new
    return Names(found)
