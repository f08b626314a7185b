"""What to say about a word on the command line that is no command, no option, no experiment file and no override."""

import difflib
import os
from collections.abc import Collection, Sequence

from mpifed.core.errors import UserError


def refuse_command(word: str, commands: Collection[str]) -> None:
    if is_study(word):
        return
    near = difflib.get_close_matches(word, [*commands, "--help", "--version"], 1)
    if near:
        raise UserError(f"unknown command {word!r}; did you mean {near[0]!r}?")
    refuse_word(word, f"a command ({', '.join(commands)}) nor ")


def refuse_words(words: Sequence[str]) -> None:
    """UserError for the first word that is neither an experiment file nor KEY=VALUE, or whose key lacks its table."""
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
        if equals and "." not in key and (meant := setting(key.strip())) not in (None, key.strip()):
            raise UserError(f"unknown key {key.strip()!r}; write {meant}={value}")


def is_study(word: str) -> bool:
    named = word.endswith(".toml") or is_result(word) or is_data(word)
    return "=" in word or named or os.sep in word or os.path.lexists(word)


def is_result(word: str) -> bool:
    return "=" not in word and word.endswith(".h5")


def is_data(word: str) -> bool:
    """Whether a word looks like a data file, and not like a text that may be an experiment file all the same."""
    from mpifed.data.dataset import FILES

    return "=" not in word and not word.endswith(".txt") and FILES.search(word) is not None


def refuse_word(word: str, also: str = "", value: str = "") -> None:
    """UserError for a word that is neither ``also`` an experiment file nor KEY=VALUE; ``value`` is the word after."""
    from mpifed.experiment.config import FAMILIES

    if (key := setting(word)) is not None:
        raise UserError(f"{word!r} is a key, and a key needs a value: write {key}={value or 'VALUE'}")
    for kind, family in FAMILIES.items():
        if word in family.names():
            raise UserError(f"{word!r} is not an experiment file: write {kind}={word}")
    raise UserError(f"{word!r} is neither {also}an experiment file nor KEY=VALUE, such as algorithm.k0=5")


def refuse_options(more: Sequence[str], words: Sequence[str], command: str, options: Collection[str]) -> None:
    """UserError for the first of the words ``more`` that argparse did not know; ``words`` is the whole command line."""
    word = next((word for word in more if word.startswith("-")), more[0])
    option, _, value = word.partition("=")
    if not word.startswith("-"):
        raise UserError(f"{command} takes no argument {word!r}: `python -m mpifed {command} --help` says what it takes")
    key = setting(option.lstrip("-"))
    if key is not None and command in ("run", "resume", "sweep", "tune", "certify", "fit", "check"):
        following = [*words, "-", "-"][list(words).index(word) + 1]
        value = value or ("VALUE" if following.startswith("-") or "=" in following else following)
        raise UserError(f"{option} is a key of the experiment, not an option: write {key}={value}")
    near = difflib.get_close_matches(option, list(options), 1)
    hint = f"did you mean {near[0]}?" if near else f"`python -m mpifed {command} --help` lists the options"
    raise UserError(f"{command} has no option {option}; {hint}")


def setting(word: str) -> str | None:
    """The key of an experiment that a word means: rounds, algorithm.k0, or k0 alone; None where there is none."""
    from mpifed.core.component import fields_of
    from mpifed.experiment.config import FAMILIES, Experiment

    first, *rest = word.split(".")
    if first in fields_of(Experiment):
        return word
    for kind, family in FAMILIES.items():
        members = [family.default, *family.choices]
        if not rest and any(first in fields_of(family.member(name, kind)) for name in members):
            return f"{kind}.{word}"
    return None
