"""Names of methods, settings and columns in tables and pictures: as in print, or as the user renames them."""

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from mpifed.core.errors import UserError, raise_unknown
from mpifed.core.methods import METHODS
from mpifed.report.tables import escape_latex

SPELLINGS = ("alpha", "beta", "delta", "epsilon", "eta", "gamma", "kappa", "lambda", "mu", "nu", "rho", "sigma", "tau")
GREEK = dict(zip(SPELLINGS, "αβδεηγκλμνρστ", strict=True))
SPELT = {"lam": "lambda", "eps": "epsilon"}  # options that spell a letter otherwise
LOWERED = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def method_title(name: str) -> str:
    """Return a method as its paper writes it; of a user's class the name of the class."""
    return METHODS[name].title if name in METHODS else name.rsplit(":", 1)[-1]


def setting_letter(name: str) -> tuple[str, str] | None:
    """Return the letter of a setting with its index, in print and in LaTeX: k0 -> k₀; None for a word."""
    stem = name.rstrip("0123456789")
    index = name[len(stem) :]
    stem = SPELT.get(stem, stem)
    if stem not in GREEK and not (len(stem) == 1 and stem.isalpha()):
        return None
    latex = rf"\{stem}" if stem in GREEK else stem
    return GREEK.get(stem, stem) + index.translate(LOWERED), f"${latex}_{{{index}}}$" if index else f"${latex}$"


def setting_title(name: str) -> str:
    letters = setting_letter(name)
    if letters:
        return letters[0]
    return name if "." in name else name.replace("_", " ")


def disambiguate_methods(values: Iterable[str]) -> dict[str, str]:
    """Return longer names for methods that would have the same one: classes of one name, with their files."""
    values = dict.fromkeys(values)
    titles = {value: method_title(value) for value in values}
    for shorten in (os.path.basename, str):
        counts = Counter(titles.values())
        for value in values:
            path = value.rpartition(":")[0]
            if counts[titles[value]] > 1 and path:
                titles[value] = f"{method_title(value)} ({shorten(path)})"
    return {value: name for value, name in titles.items() if name != method_title(value)}


class Names(NamedTuple):
    """Names as in print, except those that the user ``renamed`` (old -> new); ``methods``: longer names of methods."""

    renamed: Mapping[str, str] = {}
    methods: Mapping[str, str] = {}

    def of(self, printed: str, *spellings: str) -> str:
        """Return the new name of something with these spellings; ``printed`` where it has none."""
        return next((self.renamed[name] for name in (*spellings, printed) if name in self.renamed), printed)

    def setting(self, key: str, short: str) -> str:
        return self.of(setting_title(short), key, short)

    def latex(self, key: str, short: str) -> str:
        letters = setting_letter(short)
        new = self.setting(key, short)
        return letters[1] if letters and new == letters[0] else escape_latex(new)

    def value(self, key: str, value: str) -> str:
        return self.of(self.methods.get(value) or method_title(value) if key == "algorithm" else value, value)

    def part(self, key: str, short: str, value: str) -> str:
        default = f"{setting_title(short)} = {value}"
        printed = f"{self.setting(key, short)} = {self.value(key, value)}"
        return self.of(printed, f"{key}={value}", f"{short}={value}", default)


AS_PRINTED = Names()


def parse_renames(words: Sequence[str], known: Iterable[str]) -> Names:
    """Return the names that ``OLD=NEW`` asks for. OLD, one of ``known``, may contain =. UserError for any other."""
    known = dict.fromkeys(known)
    new_names: dict[str, str] = {}
    for word in words:
        if "=" not in word.strip("="):
            raise UserError(f"--rename {word} is wrong: it must be OLD=NEW, for example fedgia=ours")
        splits = [(word[:index].strip(), word[index + 1 :].strip()) for index, sign in enumerate(word) if sign == "="]
        right = [(old, new) for old, new in splits if old in known and new]
        if not right:
            raise_unknown("name for --rename", splits[0][0], known)
        old, new = right[-1]
        new_names[old] = new
    return Names(new_names)
