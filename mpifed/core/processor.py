"""The threads of a rank, and the size of blocks of samples, which follows from the cache of the processor."""

import os
from functools import cache
from pathlib import Path
from typing import NamedTuple

CPUS = Path("/sys/devices/system/cpu")
DEFAULT_BLOCK_BYTES = 1 << 20  # bytes of a block if the size of the cache is not known
MIN_BLOCK_BYTES = 1 << 19  # smaller blocks cost more in Python than the cache gains
MAX_BLOCK_BYTES = 1 << 22
BLAS_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


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
        return read_linux(CPUS)
    except (OSError, ValueError, IndexError, AttributeError):  # macOS has neither the files nor the affinity
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


def limit_blas_threads() -> None:
    """Give every BLAS one thread, unless its own variable says otherwise; called before numpy loads its BLAS.

    The last bits of a threaded product depend on the number of threads, and the other cores belong to other ranks.
    """
    for name in ("OMP_NUM_THREADS", *BLAS_VARIABLES):
        os.environ.setdefault(name, "1")


def network_threads() -> int:
    """Return the threads of a PyTorch network on a CPU: OMP_NUM_THREADS, in job scripts the cores of a rank."""
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(first) if first.isdecimal() and int(first) > 0 else 1
