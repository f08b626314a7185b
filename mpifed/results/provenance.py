"""The origin of a result: versions, machine, command line and git commit."""

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

from mpifed.results.result import FORMAT, FORMAT_VERSION, RunRecord

LIBRARIES = ("numpy", "scipy", "h5py", "mpi4py")


def describe_origin() -> dict[str, str]:
    """Return root attributes with the program that wrote a result file, the machine and the command."""
    versions = {
        "mpifed_version": installed_version("mpifed"),
        "python": platform.python_version(),
        "numpy": np.__version__,
    }
    facts = versions | {"host": platform.node(), "command_line": shlex.join(sys.orig_argv)}
    # Not cached, unlike versions: in a notebook code may be committed between two runs.
    commit = git_commit()
    return facts | ({"git_commit": commit} if commit else {})


def root_attributes(attrs: Mapping[str, Any], clients: int, before: RunRecord | None, last: int) -> dict[str, Any]:
    """Return the root attributes of a new run, or of one resumed after round ``last`` of ``before``."""
    attributes = describe_origin() | dict(attrs)
    attributes |= {"format": FORMAT, "format_version": FORMAT_VERSION, "clients": clients}
    # Attributes that are known only at the end exist from the start: changing a value touches one place of the file,
    # adding an attribute may move the others.
    attributes |= {"status": "running", "stop_reason": "", "reduction": "", "started": utc_now(), "finished": ""}
    if before is not None:
        again = f"{utc_now()} from round {last} on {attributes.get('ranks', 1)} ranks"
        resumed = f"{before.attrs.get('resumed', '')}\n{again}".strip()
        attributes |= {"started": before.attrs.get("started", attributes["started"]), "resumed": resumed}
    return attributes


def library_versions() -> dict[str, str]:
    numbers = {"mpifed": installed_version("mpifed"), "Python": platform.python_version()}
    numbers |= {name: installed_version(name) for name in LIBRARIES}
    return numbers | {"HDF5": ".".join(map(str, h5py.h5.get_libversion()))}


@cache
def installed_version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "none"


def count_threads() -> int:
    """Return the number of threads of the numerical libraries: BLAS, and PyTorch where it is loaded."""
    pools = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    torch = sys.modules.get("torch")
    return max([1, *pools, torch.get_num_threads() if torch is not None else 1])


@cache
def describe_blas() -> str:
    """Return name, version and kernels of numpy's BLAS, empty where it does not tell."""
    # The wheels of numpy and of scipy each bring a BLAS, of different versions; numpy's is in numpy.libs. Elsewhere, as
    # with conda, all packages load the same one.
    libs = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    home = os.path.realpath(os.path.dirname(np.__file__))
    lib = next((pool for pool in libs if os.path.realpath(pool["filepath"]).startswith(home)), (*libs, {})[0])
    return " ".join(str(lib[key]) for key in ("internal_api", "version", "architecture") if lib.get(key))


def describe_cpus() -> str:
    """Return the CPUs that this process may run on, such as 0-3,8; empty where the system does not tell."""
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


def utc_now() -> str:
    """Return the time, ISO 8601 in UTC."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
