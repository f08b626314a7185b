"""Record the bits of all studies, or compare them with those recorded.

    python -m tests.bits.record --check                         # which studies differ, and in which parts and columns
    python -m tests.bits.record --check --only '*/numpy/*' --ranks 1        # some of them, without those on three ranks
    python -m tests.bits.record                                 # write recorded.txt, with --only these lines of it

Exit 1 where studies differ from recorded.txt, fail, have other bits on three ranks than on one, or when resumed. Then
nothing is written.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from fnmatch import fnmatchcase
from pathlib import Path

from tests.bits.parts import Hashes
from tests.bits.pinned import PACKAGES, kernels, variables, versions
from tests.bits.special import every, on_ranks
from tests.helpers.parts import in_part

RECORDED = Path(__file__).with_name("recorded.txt")
Found = dict[str, Hashes]  # by study
SILENT = 300.0  # seconds without a new study after which a process is taken to hang
MANY = 8  # ends of a process after which the studies that are left are not run
LOCAL = ("wire", "bytes")  # parts that differ with the number of ranks


def computed(names: list[str], ranks: int) -> Found:
    """The hashes of studies, by a process or an ``mpirun`` for each of at most four cores."""
    crowd = min(4, os.cpu_count() or 1)
    with ThreadPoolExecutor(crowd) as pool:
        shares = pool.map(lambda k: each(names[k::crowd], ranks), range(crowd))
        return {name: found for share in shares for name, found in share.items()}


def each(names: list[str], ranks: int) -> Found:
    """The hashes of studies; of one that ends its process what it said, and another process takes the others."""
    found: Found = {}
    left, crashes = names, 0
    while left and crashes < MANY:
        with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
            lines, said = attempt(left, ranks, Path(folder))
        found |= lines | {name: {"failed": said} for name in [name for name in left if name not in lines][:1]}
        left, crashes = [name for name in left if name not in found], crashes + 1
    return found | {name: {"failed": "not run, for so many before it ended their process"} for name in left}


def attempt(names: list[str], ranks: int, folder: Path) -> tuple[Found, str]:
    """The hashes of the studies of one start, as far as it comes, and the end of what it printed."""
    wanted, lines, log = (folder / name for name in ("names.json", "lines.jsonl", "log"))
    wanted.write_text(json.dumps(names), "utf-8")
    lines.touch()
    beside = Path(sys.executable).with_name("mpirun")
    launcher = [beside if beside.exists() else "mpirun", "-n", ranks] if ranks > 1 else []
    command = list(map(str, [*launcher, sys.executable, "-m", "tests.bits.worker", wanted, lines, folder]))
    with open(log, "w") as out:
        root = {"cwd": Path(__file__).parents[2], "env": variables(), "start_new_session": True}
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, **root)
        seen = (0, time.monotonic())
        while process.poll() is None:
            time.sleep(0.05)
            size = lines.stat().st_size
            seen = seen if size == seen[0] else (size, time.monotonic())
            if time.monotonic() - seen[1] > SILENT:
                os.killpg(process.pid, signal.SIGKILL)
    found = dict(json.loads(line) for line in lines.read_text("utf-8").splitlines())
    return found, " ".join(log.read_text("utf-8").split())[-300:] or f"exit {process.returncode}"


def read() -> tuple[dict[str, str], Found]:
    """The versions and the hashes that are recorded."""
    head, rows = {}, {}
    for line in RECORDED.read_text("utf-8").splitlines() if RECORDED.exists() else []:
        first, *words = line.split()
        pairs = dict(word.rsplit("=", 1) for word in words if "=" in word)
        if first == "#":
            head |= pairs
        else:
            rows[first] = pairs
    return head, rows


def write(rows: Found) -> None:
    """Write recorded.txt."""
    head = ["# Hashes of studies, written by python -m tests.bits.record; they hold for:"]
    table = {"#": versions()} | {name: dict(sorted(rows[name].items(), key=column)) for name in sorted(rows)}
    lines = [" ".join([name, *(f"{part}={value}" for part, value in row.items())]) for name, row in table.items()]
    RECORDED.write_text("\n".join([*head, *lines]) + "\n", "utf-8")


def column(part: tuple[str, str]) -> tuple[bool, str]:
    """A key that sorts parts before columns."""
    return "/" in part[0], part[0]


def row(name: str, one: Found, three: Found) -> Hashes:
    """What is recorded of a study; what travelled between ranks has a hash for each number of them."""
    if "refused" in one[name]:
        return {"refused": "yes"}
    counts = {
        f"{part}{k}": found[part]
        for k, found in ((1, one[name]), (3, three.get(name, {})))
        for part in LOCAL
        if part in found
    }
    return {part: value for part, value in one[name].items() if part not in LOCAL} | counts


def different(one: Hashes, other: Hashes, but: tuple[str, ...] = LOCAL) -> str:
    """The parts in which two studies differ, columns by name; empty where they do not.

    A recorded hash may be one of several, a|b: the same program with PyTorch had either on two processors, whatever is
    pinned. Which of its functions differ there is not known.
    """
    pairs = sorted((one | other).items(), key=column)
    return " ".join(
        part for part, _ in pairs if part not in but and one.get(part) not in other.get(part, "").split("|")
    )


def wrong(one: Found, three: Found) -> Iterator[str]:
    """Studies that fail, that have other bits on three ranks, or when they are resumed."""
    studies = every()
    for name, found in one.items():
        failed = found.get("failed") or three.get(name, {}).get("failed")
        twin = one.get(studies[name].twin, found)
        if failed:
            yield f"{name} fails: {failed}"
        elif name in three and (parts := different(found, three[name])):
            yield f"{name} differs on three ranks: {parts}"
        elif parts := different(found, twin):
            yield f"{name} differs from {studies[name].twin}: {parts}"


def changed(rows: Found, recorded: Found, whole: bool) -> Iterator[str]:
    """How studies differ from those recorded; ``whole``: no study was left out."""
    for name, found in rows.items():
        but = () if "wire3" in found else tuple(f"{part}3" for part in LOCAL)
        if name not in recorded:
            yield f"{name} is not recorded"
        elif "failed" not in found and (parts := different(found, recorded[name], but)):
            yield f"{name} differs: {parts}"
    yield from (f"{name} is recorded and no study" for name in recorded if whole and name not in every())


def others(group: str) -> str:
    """What computes otherwise here than where the studies of some kernels were recorded; empty where nothing does."""
    here, there = versions(), read()[0]
    keys = [key for key in ("processor", *PACKAGES[group]) if here[key] != there.get(key)]
    return ", ".join(f"{key} is {here[key] or 'not there'} (recorded: {there.get(key)})" for key in keys)


def remarks(names: list[str]) -> Iterator[str]:
    """What is not compared with the record, and why."""
    for group in sorted({kernels(name) for name in names}):
        if reason := others(group):
            yield f"{group} is compared between ranks alone, or not at all: {reason}"
    if versions()["libc"] != (libc := read()[0].get("libc")):
        yield f"exp and log of single numbers may differ: the C library is {versions()['libc']} (recorded: {libc})"


def main(words: list[str] | None = None) -> int:
    """Record or check; 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare with recorded.txt")
    parser.add_argument("--only", action="append", metavar="GLOB", help="studies to run, such as 'fedavg/*'")
    parser.add_argument("--part", metavar="K/N", help="only part K of N of the studies, drawn by names")
    parser.add_argument("--ranks", choices=["1", "both"], default="both", help="leave out the runs on three ranks")
    args = parser.parse_args(words)
    if not args.check and (args.ranks == "1" or args.part):
        parser.error("--ranks 1 and --part are for --check: what is recorded is of both, and of all studies")
    if not args.check and args.only and any(map(others, PACKAGES)):
        parser.error("recorded.txt holds for other versions: record all of it")
    begun, here, recorded = time.monotonic(), versions(), read()[1]
    globs = args.only or ["*"]
    wanted = [name for name in every() if in_part(name, args.part) and any(fnmatchcase(name, glob) for glob in globs)]
    names = [name for name in wanted if all(here[package] for package in PACKAGES[kernels(name)])]
    if not args.check and names != wanted:
        parser.error(f"not installed, and needed: {', '.join(name for name in here if not here[name])}")
    one = computed(names, 1)
    again = [name for name in names if on_ranks(name) and not {"refused", "failed"} & one[name].keys()]
    three = computed(again, 3) if args.ranks == "both" else {}
    rows, found = {name: row(name, one, three) for name in names}, list(wrong(one, three))
    if args.check:
        alike = {group for group in PACKAGES if not others(group)}
        whole = not (args.only or args.part)
        found += changed({name: rows[name] for name in names if kernels(name) in alike}, recorded, whole)
    elif not found:
        write({**(recorded if args.only else {}), **rows})
    print(*found, *(remarks(wanted) if args.check else ()), sep="\n")
    refused = sum("refused" in one[name] for name in names)
    runs = f"{len(names)} studies: {refused} refused, {len(names) - refused} on one rank, {len(three)} on three too"
    print(f"{runs}; {time.monotonic() - begun:.0f} s; {len(found)} wrong")
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
