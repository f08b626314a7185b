"""Sentences that advise a setting, with what comes out where somebody does what they say: the rows of advised.txt."""

import re
from pathlib import Path
from typing import NamedTuple


class Advice(NamedTuple):
    """A study as it is typed and what is said of it, a regex whose groups are the settings that it advises.

    ``then`` is what is typed behind the study, without words that begin as those with a minus; where it is empty, the
    groups as they stand. Then f falls in the run, whose model is that of ``like`` where that is given; or the sentence
    ``next`` is said.
    """

    study: str
    says: str
    then: str = ""
    like: str = ""
    next: str = ""


MARKS = {"=>": "then", "~~": "like", "!!": "next"}


def read(lines: list[str]) -> list[Advice]:
    """Read rows of two lines; the names of beginnings stand above them."""
    names: dict[str, str] = {}
    rows = []
    study = ""
    for line in lines:
        full = re.sub(r"\{([A-Z]+)\}", lambda name: names[name[1]], line)
        if (named := re.fullmatch(r"([A-Z]+): (.*)", full)) is not None:
            names[named[1]] = named[2]
        elif line.startswith("    "):
            says, *more = re.split(r" (=>|~~|!!) ", full[4:])
            rows.append(Advice(study, says, **{MARKS[more[k]]: more[k + 1] for k in range(0, len(more), 2)}))
        elif not line.startswith("#"):
            study = full
    return rows


ADVISED = read(Path(__file__).with_suffix(".txt").read_text("utf-8").splitlines())
