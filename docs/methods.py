"""The list of all methods, mpifed/core/methods.py, and the names of mpifed.algorithms, from the files of the folder."""

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent / "mpifed"
LIST = ROOT / "core" / "methods.py"
NAMES = ROOT / "algorithms" / "__init__.pyi"  # what type checkers and editors read

HEAD = '''"""All methods: generated from the files in mpifed/algorithms by `python docs/build.py`."""

from typing import NamedTuple


class MethodEntry(NamedTuple):
    """The class of a method, "module:Class" in mpifed/algorithms, its title, and its look in pictures."""

    path: str
    title: str
    colour: str
    marker: int
    line: int


METHODS = {
'''
TAIL = """}
CHOICES = {name: f"mpifed.algorithms.{method.path}" for name, method in METHODS.items()}
"""


def tagged() -> Iterator[tuple[str, str, str]]:
    """Tag, module and class of each method in the folder."""
    for path in sorted((ROOT / "algorithms").glob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef):
                tags = [word.value.value for word in node.keywords if word.arg == "tag"]
                if tags and is_method(f"mpifed.algorithms.{path.stem}", node.name):
                    yield tags[0], f"mpifed.algorithms.{path.stem}", node.name


def is_method(module: str, name: str) -> bool:
    from mpifed.algorithms.bases.algorithm import Algorithm

    return issubclass(getattr(importlib.import_module(module), name), Algorithm)


def files() -> dict[Path, str]:
    """The generated files and what must be in them."""
    found = sorted(tagged())
    rows = [f"    {row(tag, module, name)},\n" for tag, module, name in found]
    imports = sorted(f"from {module} import {name} as {name}\n" for _, module, name in found)
    return {LIST: "".join([HEAD, *rows, TAIL]), NAMES: "".join(imports)}


def row(tag: str, module: str, name: str) -> str:
    cls: Any = getattr(importlib.import_module(module), name)
    look = cls.plot_style
    values = f'"{module.rpartition(".")[2]}:{name}", "{cls.title}", "{look.colour}", {look.marker}, {look.line}'
    return f'"{tag}": MethodEntry({values})'


def write() -> bool:
    """Write the generated files; whether one of them was another."""
    found = files()
    old = [path.read_text("utf-8") for path in found]
    for path, text in found.items():
        path.write_text(text, "utf-8")
    return old != list(found.values())
