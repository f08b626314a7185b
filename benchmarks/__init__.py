"""Benchmarks of mpifed: the tables and figures of five papers, and speed. Importing them limits BLAS to one thread."""

import os

for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
