"""The folder of the real data, where there is one."""

import os

REAL = os.environ.get("MPIFED_DATA", "")
