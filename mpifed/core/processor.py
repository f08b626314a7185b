"""The size of blocks of samples, which follows from the cache of the processor."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

CPUS = Path("/sys/devices/system/cpu")
DEFAULT_BLOCK_BYTES = 1 << 20  # bytes of a block if the size of the cache is not known
MIN_BLOCK_BYTES = 1 << 19  # smaller blocks cost more in Python than the cache gains
MAX_BLOCK_BYTES = 1 << 22


class BlockSize(NamedTuple):
    """The bytes of samples in a block, and the reason for this number."""

    bytes: int
    reason: str


def choose_block_size(user_value: int | None = None) -> BlockSize:
    """Choose the size of blocks: ``user_value``, or half of the L2 cache of a core."""
    if user_value is not None:
        return BlockSize(user_value, "the experiment says so")
    size = l2_bytes_per_core()
    if size is None:
        return BlockSize(DEFAULT_BLOCK_BYTES, "the size of the L2 cache is not known")
    # Half: the model, the gradient and the other arrays of a step pass through the cache beside the samples.
    return BlockSize(
        min(max(size // 2, MIN_BLOCK_BYTES), MAX_BLOCK_BYTES), f"a core has {size >> 10:,} KiB of L2 cache"
    )


@cache
def l2_bytes_per_core() -> int | None:
    """Return the bytes of L2 cache of one core, its part of a shared one; None if the system does not tell."""
    try:
        return read_mac() if sys.platform == "darwin" else read_linux(CPUS)
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return None


def read_linux(cpus: Path) -> int | None:
    """Read the L2 cache of the first CPU of this process, divided by the cores, not threads, that share it."""
    # The first, because fast cores have the low numbers where a processor has slow ones too.
    cpu = cpus / f"cpu{min(os.sched_getaffinity(0))}"
    threads = len(parse_cpu_list((cpu / "topology" / "thread_siblings_list").read_text()))
    for index in sorted((cpu / "cache").glob("index*")):
        if (index / "level").read_text().strip() == "2" and (index / "type").read_text().strip() in ("Unified", "Data"):
            sharing = len(parse_cpu_list((index / "shared_cpu_list").read_text()))
            # Two threads of a core share its cache in any case, and a rank runs on one of them.
            return parse_size((index / "size").read_text()) // max(1, sharing // threads)
    return None


def parse_cpu_list(text: str) -> list[int]:
    """Parse a list of CPUs such as 0-3,8."""
    runs = [list(map(int, run.split("-"))) for run in text.strip().split(",")]
    return [cpu for run in runs for cpu in range(run[0], run[-1] + 1)]


def parse_size(text: str) -> int:
    """Parse a size such as 2048K into bytes; ValueError if it is none."""
    text = text.strip()
    return int(text.rstrip("KMG")) << {"K": 10, "M": 20, "G": 30}.get(text[-1:], 0)


def read_mac() -> int:
    """Read the L2 cache of a fast core of a Mac, divided by the cores that share it."""
    output = subprocess.run(["sysctl", "hw"], capture_output=True, text=True, timeout=5, check=True)
    facts = dict(line.split(": ", 1) for line in output.stdout.splitlines() if ": " in line)
    size = int(facts.get("hw.perflevel0.l2cachesize") or facts.get("hw.l2cachesize") or 0)
    if size <= 0:
        raise ValueError("sysctl does not tell the size of the L2 cache")
    return size // max(1, int(facts.get("hw.perflevel0.cpusperl2") or 1))
