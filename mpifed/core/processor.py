"""The cache of the processor, and from it the size of blocks of samples."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

CPUS = Path("/sys/devices/system/cpu")
UNKNOWN = 1 << 20  # bytes of a block where the size of the cache is not known
LEAST = 1 << 19  # smaller blocks cost more in Python than the cache gains
MOST = 1 << 22


class BlockSize(NamedTuple):
    """Bytes of samples in a block, and the reason for this number."""

    bytes: int
    reason: str


def block_size(wanted: int | None = None) -> BlockSize:
    """The size of blocks: as ``wanted``, or half of the L2 cache that a core has to itself."""
    if wanted is not None:
        return BlockSize(wanted, "the experiment says so")
    size = l2_of_a_core()
    if size is None:
        return BlockSize(UNKNOWN, "the size of the L2 cache is not known")
    # Half: the model, the gradient and the other arrays of a step pass through the cache beside the samples.
    return BlockSize(min(max(size // 2, LEAST), MOST), f"a core has {size >> 10:,} KiB of L2 cache")


@cache
def l2_of_a_core() -> int | None:
    """Bytes of L2 cache for each core that shares it; None where the system does not tell."""
    try:
        return from_sysctl() if sys.platform == "darwin" else from_linux(CPUS)
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return None


def from_linux(cpus: Path) -> int | None:
    """The L2 cache of the first CPU that this process may use, divided by the cores, not threads, that share it."""
    # The first: on processors with cores of two kinds these have the low numbers, and are those that compute.
    cpu = cpus / f"cpu{min(os.sched_getaffinity(0))}"
    threads = len(listed((cpu / "topology" / "thread_siblings_list").read_text()))
    for index in sorted((cpu / "cache").glob("index*")):
        if (index / "level").read_text().strip() == "2" and (index / "type").read_text().strip() in ("Unified", "Data"):
            sharing = len(listed((index / "shared_cpu_list").read_text()))
            # Two threads of a core share its cache in any case, and a rank runs on one of them.
            return in_bytes((index / "size").read_text()) // max(1, sharing // threads)
    return None


def listed(text: str) -> list[int]:
    """The numbers of a list such as 0-3,8."""
    runs = [list(map(int, run.split("-"))) for run in text.strip().split(",")]
    return [cpu for run in runs for cpu in range(run[0], run[-1] + 1)]


def in_bytes(text: str) -> int:
    """The bytes of a size such as 2048K; ValueError where it is none."""
    text = text.strip()
    return int(text.rstrip("KMG")) << {"K": 10, "M": 20, "G": 30}.get(text[-1:], 0)


def from_sysctl() -> int:
    """The L2 cache of a fast core of a Mac, divided by the cores that share it."""
    done = subprocess.run(["sysctl", "hw"], capture_output=True, text=True, timeout=5, check=True)
    facts = dict(line.split(": ", 1) for line in done.stdout.splitlines() if ": " in line)
    size = int(facts.get("hw.perflevel0.l2cachesize") or facts.get("hw.l2cachesize") or 0)
    if size <= 0:
        raise ValueError("sysctl does not tell the size of the L2 cache")
    return size // max(1, int(facts.get("hw.perflevel0.cpusperl2") or 1))
