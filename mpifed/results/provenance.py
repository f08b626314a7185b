"""Where a result comes from: versions, machine, command line and git commit."""

import datetime
import os
import platform
import shlex
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from itertools import groupby

import h5py.h5
import numpy as np
from threadpoolctl import threadpool_info

LIBRARIES = ("numpy", "scipy", "h5py", "mpi4py")


def provenance() -> dict[str, str]:
    """Root attributes that tell which program wrote a result file, where, and by which command."""
    versions = {"mpifed_version": installed("mpifed"), "python": platform.python_version(), "numpy": np.__version__}
    facts = versions | {"host": platform.node(), "command_line": shlex.join(sys.orig_argv)}
    commit = git_commit()
    return facts | ({"git_commit": commit} if commit else {})


def versions() -> dict[str, str]:
    found = {"mpifed": installed("mpifed"), "Python": platform.python_version()}
    found |= {name: installed(name) for name in LIBRARIES}
    return found | {"HDF5": ".".join(map(str, h5py.h5.get_libversion()))}


def installed(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"


def threads() -> int:
    """Threads that numerical libraries of this process use: BLAS, and PyTorch where it is loaded."""
    pools = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    torch = sys.modules.get("torch")
    return max([1, *pools, torch.get_num_threads() if torch is not None else 1])


def blas() -> str:
    """numpy's BLAS: its name, version and the kernels that it chose for this processor; empty where it does not tell.

    numpy's wheels have one of their own, beside those of scipy; elsewhere all packages load the same one.
    """
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    home = os.path.realpath(os.path.dirname(np.__file__))
    found = next((pool for pool in pools if os.path.realpath(pool["filepath"]).startswith(home)), (*pools, {})[0])
    return " ".join(str(found[key]) for key in ("internal_api", "version", "architecture") if found.get(key))


def cpus() -> str:
    """The CPUs that this process may run on, such as 0-3,8; empty where the system does not tell."""
    if not hasattr(os, "sched_getaffinity"):
        return ""
    pairs = enumerate(sorted(os.sched_getaffinity(0)))
    runs = [[cpu for _, cpu in run] for _, run in groupby(pairs, lambda pair: pair[1] - pair[0])]
    return ",".join("-".join(map(str, dict.fromkeys((run[0], run[-1])))) for run in runs)


def git_commit() -> str:
    try:
        done = subprocess.run(
            ["git", "rev-parse", "HEAD"], stdin=subprocess.DEVNULL, capture_output=True, timeout=1, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("ascii", "replace").strip() if done.returncode == 0 else ""


def now() -> str:
    """The time, ISO 8601 in UTC."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
