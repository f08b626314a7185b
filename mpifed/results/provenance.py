"""Where a result comes from: versions, machine, command line and git commit."""

import datetime
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import h5py.h5
import numpy as np
from threadpoolctl import threadpool_info

from mpifed.results.result import FORMAT, FORMAT_VERSION, Result

LIBRARIES = ("numpy", "scipy", "h5py", "mpi4py")


def provenance() -> dict[str, str]:
    """Root attributes that tell which program wrote a result file, where, and by which command."""
    versions = {"mpifed_version": installed("mpifed"), "python": platform.python_version(), "numpy": np.__version__}
    facts = versions | {"host": platform.node(), "command_line": shlex.join(sys.orig_argv)}
    # Asked each time, unlike versions: in a notebook code is committed between one run and the next.
    commit = git_commit()
    return facts | ({"git_commit": commit} if commit else {})


def root_attributes(attrs: Mapping[str, Any], clients: int, before: Result | None, last: int) -> dict[str, Any]:
    """Root attributes of a run that begins, or that is resumed after round ``last`` of ``before``."""
    attributes = provenance() | dict(attrs)
    attributes |= {"format": FORMAT, "format_version": FORMAT_VERSION, "clients": clients}
    # Those that are known at the end only are there from the start: to change the value of an attribute touches one
    # place of the file, to add one may move the others.
    attributes |= {"status": "running", "stop_reason": "", "reduction": "", "started": now(), "finished": ""}
    if before is not None:
        again = f"{now()} from round {last} on {attributes.get('ranks', 1)} ranks"
        resumed = f"{before.attrs.get('resumed', '')}\n{again}".strip()
        attributes |= {"started": before.attrs.get("started", attributes["started"]), "resumed": resumed}
    return attributes


def versions() -> dict[str, str]:
    found = {"mpifed": installed("mpifed"), "Python": platform.python_version()}
    found |= {name: installed(name) for name in LIBRARIES}
    return found | {"HDF5": ".".join(map(str, h5py.h5.get_libversion()))}


@cache
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


@cache
def blas() -> str:
    """numpy's BLAS: its name, version and the kernels that it chose for the processor; empty where it does not tell."""
    # numpy's wheels have a BLAS of their own, in numpy.libs, beside that of scipy's wheels, which is another version.
    # Elsewhere, as with conda, all packages load the same one.
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    home = os.path.realpath(os.path.dirname(np.__file__))
    found = next((pool for pool in pools if os.path.realpath(pool["filepath"]).startswith(home)), (*pools, {})[0])
    return " ".join(str(found[key]) for key in ("internal_api", "version", "architecture") if found.get(key))


def cpus() -> str:
    """The CPUs that this process may run on, such as 0-3,8; empty where the system does not tell."""
    if not hasattr(os, "sched_getaffinity"):
        return ""
    runs: list[list[int]] = []
    for cpu in sorted(os.sched_getaffinity(0)):
        if runs and cpu == runs[-1][-1] + 1:
            runs[-1][1:] = [cpu]
        else:
            runs.append([cpu])
    return ",".join(["-".join(map(str, run)) for run in runs])


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
