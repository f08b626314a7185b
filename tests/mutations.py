"""Lines of the package that are made wrong one at a time, each with the tests that then fail: tests/mutations.toml.

python -m tests.mutations                     # all of them, in copies of the package: exit 1 where one survives unsaid
python -m tests.mutations scaffold --workers 2     # those whose name contains a word, two at a time
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from queue import SimpleQueue
from typing import Any, NamedTuple

ROOT = Path(__file__).parent.parent
LONGEST = 300.0  # seconds in which a test has to say so
COPIED = ("mpifed", "tests", "docs", "benchmarks", "jobs", "pyproject.toml", "README.md", "CHANGELOG.md")


class Mutation(NamedTuple):
    """A text of the package and what takes its place, and the tests that fail then."""

    name: str
    old: str
    new: str
    tests: tuple[str, ...]  # names of functions
    only: str = ""  # of these the cases that -k chooses
    survives: str = ""  # why no test of the default run kills it


def read_mutations() -> list[Mutation]:
    tables = tomllib.loads((ROOT / "tests" / "mutations.toml").read_text("utf-8"))
    return [Mutation(name, **table | {"tests": tuple(table["tests"])}) for name, table in tables.items()]


@cache
def read_texts(folder: str, pattern: str) -> dict[Path, str]:
    """Return the texts of files by their path in the repository."""
    return {path.relative_to(ROOT): path.read_text("utf-8") for path in (ROOT / folder).rglob(pattern)}


def find_file(mutation: Mutation) -> Path:
    """Return the one file of the package that has the text of a mutation; raise ValueError unless it is there once."""
    found = [path for path, text in read_texts("mpifed", "*.py").items() for _ in range(text.count(mutation.old))]
    if len(found) != 1:
        raise ValueError(f"{mutation.name}: its text is {len(found)} times in the package, and must be once")
    return found[0]


def find_tests(mutation: Mutation) -> list[str]:
    """Return the node ids of the tests of a mutation; raise ValueError where one is missing."""
    ids = []
    for name in mutation.tests:
        files = [path for path, text in read_texts("tests", "test_*.py").items() if f"\ndef {name}(" in text]
        if not files:
            raise ValueError(f"{mutation.name}: there is no {name}")
        ids += [f"{path}::{name}" for path in files]
    return ids


class Copy:
    """A copy of the package and its tests, in which one mutation after the other is made."""

    def __init__(self, folder: str) -> None:
        self.root = Path(folder)
        for source in filter(Path.exists, (ROOT / name for name in COPIED)):
            (shutil.copytree if source.is_dir() else shutil.copy2)(source, self.root / source.name)

    def test(self, mutations: Sequence[Mutation], only: str) -> int:
        """Run the tests of mutations; return the exit status of pytest, 1 also where they take too long."""
        ids = {node: None for mutation in mutations for node in find_tests(mutation)}
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider", *ids, "-k", only]
        env = os.environ | {"PYTHONPATH": str(self.root)}
        seconds = LONGEST * len(mutations)
        try:
            done = subprocess.run(command, cwd=self.root, env=env, capture_output=True, timeout=seconds)
        except subprocess.TimeoutExpired:
            return 1
        return done.returncode

    def judge(self, mutation: Mutation, are_sound: bool) -> str:
        """Return killed, survives, or what is wrong with the mutation itself."""
        path = self.root / find_file(mutation)
        text = path.read_text("utf-8")
        if not are_sound and (code := self.test([mutation], mutation.only)):
            return f"its tests fail without it ({code})"
        path.write_text(text.replace(mutation.old, mutation.new), "utf-8")
        try:
            code = self.test([mutation], mutation.only)
        finally:
            path.write_text(text, "utf-8")
        return {0: "survives", 1: "killed"}.get(code, f"its tests do not run ({code})")


def judge(mutations: list[Mutation], workers: int) -> Iterator[tuple[Mutation, str]]:
    """Yield each mutation with what becomes of it, ``workers`` at a time."""
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(workers) as pool:
        copies: SimpleQueue[Copy] = SimpleQueue()
        for k in range(workers):
            copies.put(Copy(f"{folder}/{k}"))

        def with_copy(function: Callable[..., Any], *args: Any) -> Any:
            copy = copies.get()
            try:
                return function(copy, *args)
            except ValueError as error:
                return str(error)
            finally:
                copies.put(copy)

        # all tests in few processes: where one fails without any mutation, those of each are run by themselves
        groups = [[one for one in mutations if one.only == only] for only in {one.only: None for one in mutations}]
        codes = pool.map(lambda group: with_copy(Copy.test, group, group[0].only), groups)
        sound = {one.name: code == 0 for group, code in zip(groups, codes, strict=True) for one in group}
        verdicts = pool.map(lambda one: with_copy(Copy.judge, one, sound[one.name]), mutations)
        yield from zip(mutations, verdicts, strict=True)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="make lines of the package wrong, one at a time")
    parser.add_argument("names", nargs="*", help="words of which one is in the name (default: all)")
    parser.add_argument("--workers", type=int, default=1, help="mutations at a time")
    given = parser.parse_args(argv)
    wanted = [one for one in read_mutations() if not given.names or any(word in one.name for word in given.names)]
    killed, unsaid = 0, 0
    for one, verdict in judge(wanted, given.workers):
        killed += verdict == "killed"
        unsaid += verdict != ("survives" if one.survives else "killed")
        print(f"{verdict}: {one.name}{f' ({one.survives})' if one.survives else ''}", flush=True)
    print(f"{killed} of {len(wanted)} mutations are killed by their tests")
    return int(unsaid > 0)


if __name__ == "__main__":
    sys.exit(main())
