"""The number of threads of a rank."""

import os

BLAS_VARIABLES = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


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
