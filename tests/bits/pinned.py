"""The settings with which every x86-64 processor with AVX2 computes the same bits, and the versions they hold for."""

import importlib.metadata
import importlib.util
import os
import platform

import numpy as np

PACKAGES = {"numpy": ["numpy", "scipy"]}  # kernels -> what computes
PACKAGES |= {"compiled": [*PACKAGES["numpy"], "numba", "llvmlite"], "tensors": [*PACKAGES["numpy"], "torch"]}
PACKAGES["network"] = PACKAGES["tensors"]
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
EXTENSIONS = np.show_config(mode="dicts")["SIMD Extensions"]
HERE = [*EXTENSIONS["baseline"], *EXTENSIONS.get("found", ())]
CHOSEN = [*EXTENSIONS.get("found", ()), *EXTENSIONS.get("not found", ())]  # those among which numpy chooses
PINNED = {
    # numpy refuses names that its build assumes and warns of those it does not know; it takes those that the processor
    # lacks. X86_V4 alone would leave AVX512_ICL and AVX512_SPR on.
    "NPY_DISABLE_CPU_FEATURES": " ".join(name for name in CHOSEN if name.startswith(("AVX512", "X86_V4"))),
    "OPENBLAS_CORETYPE": "Haswell",
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "+avx2,+fma,+bmi,+bmi2,+f16c,+lzcnt,+movbe,+popcnt",  # else those of this processor
    "NUMBA_DISABLE_INTEL_SVML": "1",
    "ATEN_CPU_CAPABILITY": "avx2",
    "MKL_CBWR": "COMPATIBLE",  # the one branch that is the same on processors of Intel and of others
    **dict.fromkeys(THREADS, "1"),
}


def versions() -> dict[str, str]:
    """What computes here; empty where a package is not there. numpy takes exp of single numbers from the C library."""
    able = platform.machine() in ("x86_64", "AMD64") and not {"AVX2", "X86_V3"}.isdisjoint(HERE)
    found = {"processor": "x86-64-v3" if able else "another", "libc": "-".join(platform.libc_ver())}
    for name in sorted({name for names in PACKAGES.values() for name in names}):
        there = importlib.util.find_spec(name) is not None
        found[name] = importlib.metadata.version(name).partition("+")[0] if there else ""
    return found


def variables() -> dict[str, str]:
    """The environment of a process that computes recorded bits."""
    return {
        **os.environ,
        **PINNED,
        "PYTHONWARNINGS": "ignore",
        "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
        "OMPI_MCA_rmaps_base_oversubscribe": "1",
    } | {f"OMPI_ALLOW_RUN_AS_ROOT{part}": "1" for part in ("", "_CONFIRM")}


def kernels(name: str) -> str:
    """What computes a study: method/kernels/feature."""
    return name.split("/")[1]
