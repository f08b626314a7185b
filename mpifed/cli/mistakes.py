"""Errors about words on the command line that are no command, option, experiment file or override."""

import difflib
import os
from collections.abc import Collection, Sequence

from mpifed.core.errors import UserError


def refuse_command(word: str, commands: Collection[str]) -> None:
    """Raise UserError for a first word that is neither a command nor part of a study."""
    if is_study(word):
        return
    similar = difflib.get_close_matches(word, [*commands, "--help", "--version"], 1)
    if similar:
        raise UserError(f"unknown command {word!r}; did you mean {similar[0]!r}?")
    refuse_word(word, f"a command ({', '.join(commands)}) nor ")


def refuse_words(words: Sequence[str]) -> None:
    """Raise UserError for the first word that is no experiment file or KEY=VALUE, or whose key lacks its table."""
    # the word behind one without "=" may be its value: "rounds 20" is meant as rounds=20
    for word, following in zip(words, [*words, ""][1:], strict=True):
        if is_result(word):
            hint = "`resume` goes on with its run, `show` prints its summary"
            raise UserError(f"{word!r} is a result file, not an experiment file: {hint}")
        if is_data(word):
            raise UserError(f"{word!r} is a data file, not an experiment file: write data=file data.path={word}")
        if not is_study(word):
            refuse_word(word, value="" if "=" in following else following)
        key, equals, value = word.partition("=")
        if equals and "." not in key and (full_key := key_of(key.strip())) not in (None, key.strip()):
            raise UserError(f"unknown key {key.strip()!r}; write {full_key}={value}")


def is_study(word: str) -> bool:
    """Return True if a word may belong to a study: an override, a path or the name of a file."""
    has_file_name = word.endswith(".toml") or is_result(word) or is_data(word)
    return "=" in word or has_file_name or os.sep in word or os.path.lexists(word)


def is_result(word: str) -> bool:
    return "=" not in word and word.endswith(".h5")


def is_data(word: str) -> bool:
    """Return True if a word looks like a data file; .txt does not, since it may be an experiment file."""
    from mpifed.data.dataset import FILES

    return "=" not in word and not word.endswith(".txt") and FILES.search(word) is not None


def refuse_word(word: str, also: str = "", value: str = "") -> None:
    """Raise UserError for a word that is no ``also``, experiment file or KEY=VALUE; ``value`` is the word after it."""
    from mpifed.experiment.config import FAMILIES

    if (key := key_of(word)) is not None:
        raise UserError(f"{word!r} is a key, and a key needs a value: write {key}={value or 'VALUE'}")
    for family_key, family in FAMILIES.items():
        if word in family.names():
            raise UserError(f"{word!r} is not an experiment file: write {family_key}={word}")
    raise UserError(f"{word!r} is neither {also}an experiment file nor KEY=VALUE, such as algorithm.k0=5")


def refuse_options(more: Sequence[str], words: Sequence[str], command: str, options: Collection[str]) -> None:
    """Raise UserError for the first of the words ``more`` that argparse did not know; ``words`` is the command line."""
    word = next((word for word in more if word.startswith("-")), more[0])
    option, _, value = word.partition("=")
    if not word.startswith("-"):
        raise UserError(f"{command} takes no argument {word!r}: `python -m mpifed {command} --help` says what it takes")
    key = key_of(option.lstrip("-"))
    if key is not None and command in ("run", "resume", "sweep", "tune", "certify", "fit", "check"):
        following = [*words, "-", "-"][list(words).index(word) + 1]
        value = value or ("VALUE" if following.startswith("-") or "=" in following else following)
        raise UserError(f"{option} is a key of the experiment, not an option: write {key}={value}")
    similar = difflib.get_close_matches(option, list(options), 1)
    hint = f"did you mean {similar[0]}?" if similar else f"`python -m mpifed {command} --help` lists the options"
    raise UserError(f"{command} has no option {option}; {hint}")


def key_of(word: str) -> str | None:
    """Return the key of an experiment that a word means: rounds, algorithm.k0, or k0 alone; None if there is none."""
    from mpifed.core.component import fields_of
    from mpifed.experiment.config import FAMILIES, Experiment

    first, *rest = word.split(".")
    if first in fields_of(Experiment) or first in Experiment.refused:
        return word
    for family_key, family in FAMILIES.items():
        members = [family.default, *family.choices]
        if not rest and any(first in fields_of(family.member(name, family_key)) for name in members):
            return f"{family_key}.{word}"
    return None
