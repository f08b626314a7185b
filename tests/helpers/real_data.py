"""The folder of the real data, where there is one."""

from __future__ import annotations

import os

REAL = os.environ.get("MPIFED_DATA", "")
