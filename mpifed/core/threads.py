"""How many threads a rank uses."""

import os

KERNELS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def limit() -> None:
    """Give every BLAS one thread, unless its own variable says otherwise; called before numpy loads its BLAS.

    The last bits of a threaded product depend on the number of threads, and the other cores belong to other ranks.
    """
    for name in ("OMP_NUM_THREADS", *KERNELS):
        os.environ.setdefault(name, "1")


def of_networks() -> int:
    """Threads of a PyTorch network on a CPU: OMP_NUM_THREADS, which the job scripts set to the cores of a rank."""
    first = os.environ.get("OMP_NUM_THREADS", "").partition(",")[0].strip()
    return int(first) if first.isdecimal() and int(first) > 0 else 1
