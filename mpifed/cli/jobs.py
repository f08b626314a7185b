"""The command jobs: copies the scripts for batch systems out of the package."""

import argparse
import shutil
from pathlib import Path

from mpifed.core.errors import UserError, reason

PACKAGE = Path(__file__).resolve().parent.parent
HOMES = (PACKAGE / "jobs", PACKAGE.parent / "jobs")  # in a wheel, or beside the package in a clone


def jobs(args: argparse.Namespace) -> str:
    """Copy the scripts to the folder jobs in ``--to``; return their path. UserError where one is there already."""
    source = next((home for home in HOMES if (home / "single.sbatch").exists()), None)
    if source is None:
        raise UserError("the scripts of jobs/ are not in this installation of mpifed: take them from its repository")
    if not Path(args.to).is_dir():
        raise UserError(f"--to {args.to} is wrong: there is no such folder")
    target = Path(args.to, "jobs")
    names = sorted(path.relative_to(source) for path in source.rglob("*") if path.is_file() and path.suffix != ".pyc")
    existing = [name for name in names if (target / name).exists()]
    if existing and (not args.force or target.samefile(source)):
        raise UserError(f"{target / existing[0]} exists; say --force to overwrite it or --to for another folder")
    try:
        for name in names:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source / name, target / name)
    except OSError as error:
        raise UserError(f"{target} cannot be written: {reason(error)}") from None
    return f"written to {target}: " + ", ".join(map(str, names))
