"""python -m benchmarks.speed.machine: what there is to know about this machine beside a measurement."""

import datetime
import os
import platform
import subprocess
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

from benchmarks.speed import busy
from mpifed.core.processor import CPUS, block_size
from mpifed.mpi.library import library
from mpifed.results.provenance import cpus, git_commit, installed, versions

INFO, STAT = Path("/proc/cpuinfo"), Path("/proc/stat")
FIELDS = ("level", "type", "size", "shared_cpu_list")


def describe() -> str:
    """Lines of ``name: value``: date, processor, caches, memory, load and versions."""
    gigabytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 1e9
    loads = ", ".join(f"{load:.2f}" for load in os.getloadavg())
    facts = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "processor": processor(),
        "cores": f"{len(busy.cores())} ({cpus()})" if cpus() else str(len(busy.cores())),
        "caches": ", ".join(caches()) or "unknown",
        "blocks": f"{block_size().bytes:,} bytes ({block_size().reason})",
        "memory": f"{gigabytes:.1f} GB",
        "load": f"{loads} (of 1, 5 and 15 minutes)",
        "system": platform.platform(),
        "BLAS": blas(),
        "MPI": mpi(),
    }
    found = facts | versions() | {"numba": installed("numba"), "commit": commit()}
    return "".join(f"{name}: {value}\n" for name, value in found.items())


def processor() -> str:
    """The name of the processor, with model numbers where the name says little."""
    try:
        lines = [line.split(":", 1) for line in INFO.read_text().splitlines() if ":" in line]
    except OSError:
        return platform.processor() or platform.machine()
    facts = {name.strip(): value.strip() for name, value in reversed(lines)}
    numbers = ", ".join(f"{name} {facts[name]}" for name in ("cpu family", "model", "stepping") if name in facts)
    return f"{facts.get('model name', platform.machine())} ({numbers})" if numbers else platform.machine()


def caches() -> list[str]:
    """Level, kind and size of each cache of the first core, with the cores that share it."""
    found = []
    for index in sorted((CPUS / "cpu0" / "cache").glob("index*")):
        level, kind, size, shared = ((index / name).read_text().strip() for name in FIELDS)
        found.append(f"L{level} {kind.lower()} {size} (cpu {shared})")
    return found


def blas() -> str:
    """The BLAS libraries of this process, with versions, kernels and threads."""
    np.ones((2, 2)) @ np.ones((2, 2))
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return "; ".join(
        f"{pool['internal_api']} {pool['version']} ({pool.get('architecture', '')}, threads: {pool['num_threads']})"
        for pool in pools
    )


def mpi() -> str:
    """The MPI library, or none."""
    try:
        return library()
    except (ImportError, RuntimeError):
        return "none"


def used(seconds: float = 0.5) -> float:
    """Cores that programs use now; 0 where the system does not tell."""

    def busy() -> float:
        user, nice, system = STAT.read_text().split()[1:4]
        return (int(user) + int(nice) + int(system)) / os.sysconf("SC_CLK_TCK")

    try:
        before, begun = busy(), time.perf_counter()
        time.sleep(seconds)
        return (busy() - before) / (time.perf_counter() - begun)
    except OSError:
        return 0.0


def commit() -> str:
    """The git commit of the current folder, and whether files differ from it."""
    found = git_commit()
    if not found:
        return "unknown"
    changed = subprocess.run(["git", "status", "--porcelain", "-uno"], capture_output=True, text=True, check=False)
    return f"{found}{' with changes' if changed.stdout.strip() else ''}"


if __name__ == "__main__":
    print(describe(), end="")
