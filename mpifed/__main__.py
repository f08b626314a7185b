"""python -m mpifed"""
import os
import sys

# One BLAS thread a rank, set before numpy loads its BLAS; who sets one of these decides for himself.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS"):
    os.environ.setdefault(name, "1")

from mpifed.cli import main  # noqa: E402

if __name__ == "__main__":
    sys.exit(main())
