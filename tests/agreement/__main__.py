"""python -m tests.agreement [GROUP …]: compare anew, all groups or these, and write docs/studies/agreement.md."""

import sys
import tempfile
from pathlib import Path

from tests.agreement import page

absent: dict[str, int] = {}
for group in sys.argv[1:] or page.groups():
    with tempfile.TemporaryDirectory() as folder:
        rows = page.rows_of(group, Path(folder))
    for row in rows:
        print(group, *row[:4], f"x {row.x:.1e} f {row.f:.1e}", sep=" | ", flush=True)
        if page.missing(row):
            absent[row.program] = absent.get(row.program, 0) + 1
    page.write({group: rows})
for program, count in absent.items():
    print(f"{program} is not installed: {count} of its rows keep the numbers that the page had; pip install {program}")
