"""python -m tests.agreement [GROUP …]: compare anew, all groups or these, and write docs/studies/agreement.md."""

import sys
import tempfile
from pathlib import Path

from tests.agreement import page

chosen = sys.argv[1:] or page.groups()
measured = {}
for group in chosen:
    with tempfile.TemporaryDirectory() as folder:
        measured[group] = page.rows_of(group, Path(folder))
    for row in measured[group]:
        print(group, *row[:4], f"x {row.x:.1e} f {row.f:.1e}", sep=" | ")
page.write(measured)
