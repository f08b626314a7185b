"""lock.toml: the hashes of what is fixed before a held-out workload is opened."""

import hashlib
import tomllib
from collections.abc import Iterable
from pathlib import Path

from benchmarks.arena.plan import file, workloads
from mpifed import UserError

FIXED = ("workloads.toml", "rules.toml", "goals.toml", "settings.toml", "decisions.toml")
HEAD = (
    "# Written by python -m benchmarks.arena lock: SHA-256 of the files that were fixed before the held-out runs.\n\n"
)


def hashes() -> dict[str, str]:
    """The hashes of the files as they are; UserError for one that is not there."""
    for name in FIXED:
        if not file(name).exists():
            raise UserError(f"{name} is missing, and must be written before held-out workloads are opened")
    return {name: hashlib.sha256(file(name).read_bytes()).hexdigest() for name in FIXED}


def lock() -> Path:
    """Write lock.toml. UserError where there is one of other files: held-out runs belong to that."""
    path = file("lock.toml")
    found = hashes()
    if path.exists() and tomllib.loads(path.read_text("utf-8")) != found:
        raise UserError(
            "lock.toml is of other files: held-out workloads can be opened once; to begin another study, delete "
            "lock.toml and choose other held-out workloads"
        )
    path.write_text(HEAD + "".join(f'"{name}" = "{value}"\n' for name, value in found.items()), "utf-8")
    return path


def refuse_unlocked(names: Iterable[str]) -> None:
    """UserError where one of these workloads is held out and lock.toml has not the hashes of the files as they are."""
    held = sorted({name for name in names if workloads()[name].part == "held-out"})
    if not held:
        return
    path = file("lock.toml")
    if not path.exists():
        raise UserError(f"{held[0]} is held out, and lock.toml is missing: python -m benchmarks.arena lock writes it")
    known, found = tomllib.loads(path.read_text("utf-8")), hashes()
    for name in FIXED:
        if known.get(name) != found[name]:
            raise UserError(f"{held[0]} is held out, and {name} is not the file whose hash is in lock.toml: restore it")
