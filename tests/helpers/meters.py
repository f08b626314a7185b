"""How wide the house is: what a whole run enters, and what modules and classes are tied to one another.

``python -m tests.helpers.meters`` prints every number, and with fedgia behind it the functions of that run.
"""

import ast
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

import mpifed
from mpifed.core.members import stub_names

ROOT = Path(mpifed.__file__).parent
REPOSITORY = ROOT.parent
SOURCES = tuple(sorted(ROOT.rglob("*.py")))

# Plain runs: three rounds of eight clients in one process.
RUNS: dict[str, dict[str, Any]] = {
    "fedgia": {"algorithm": "fedgia", "data": {"clients": 8, "features": 5}},
    "fedavg": {"algorithm": "fedavg", "problem": "softmax", "data": {"name": "synthetic", "clients": 8}},
    "mlp": {"algorithm": "fedavg", "problem": "mlp", "data": {"name": "synthetic", "clients": 8}},
}

# Files of features that none of these runs has. A file that is added to a feature is added here, or lies in its folder.
FILES_OFF = r"""features/(?!(settings|stop|conflicts?|matching)\.py|__init__) engine/(?!(plugin|listed)\.py)
experiment/warm_start experiment/optimum data/sample_columns data/sources/held
federation/local_transform federation/transform federation/peers/ mpi/signs compressors/ graphs/
algorithms/parts/decay algorithms/parts/budget algorithms/parts/noise
kernels/compiled kernels/sparse kernels/tensor kernels/torch networks/torch"""
OFF = re.compile("|".join(FILES_OFF.split()))

SEAMS = ("Block", "Local", "Federation", "Evaluation", "Host")  # classes that a combination of features once derived
HOUSE = (
    "algorithm",
    "host",
    "fed",
    "channel",
    "server",
    "method",
    "world",
    "problem",
)  # names of the house's own objects


@contextmanager
def traced(codes: set[CodeType]) -> Iterator[None]:
    """Note the code of every function of the package that is called: lambdas and comprehensions too."""

    def note(frame: Any, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(f"{ROOT}/"):
            codes.add(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        yield
    finally:
        sys.setprofile(before)


def entered(study: dict[str, Any]) -> set[CodeType]:
    """The code of every function of the package that a whole ``mpifed.run`` enters."""
    table = {**study, "rounds": 3, "kernels": "numpy"}
    mpifed.run(table, progress=None)  # modules are loaded by then, which happens once in a process
    codes: set[CodeType] = set()
    with traced(codes):
        mpifed.run(table, progress=None)
    return codes


def file_of(code: CodeType) -> str:
    """federation/host.py of the code of a method of Host."""
    return str(Path(code.co_filename).relative_to(ROOT))


def length(code: CodeType) -> int:
    """Lines of a function, from its first decorator or its ``def`` to its last statement."""
    return max(line for _, _, line in code.co_lines() if line) - code.co_firstlineno + 1


def run_widths(name: str) -> dict[str, int]:
    """Functions, files and lines of functions that a plain run enters, and how many belong to features that are off."""
    codes = entered(RUNS[name])
    return {
        "functions": len(codes),
        "files": len({file_of(code) for code in codes}),
        "lines": sum(map(length, codes)),
        "functions of features that are off": sum(OFF.match(file_of(code)) is not None for code in codes),
    }


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file: most meters look at them."""
    return tuple(ast.walk(tree(path)))


def module(path: Path) -> str:
    """mpifed.kernels.blocks of mpifed/kernels/blocks.py."""
    return ".".join(path.relative_to(REPOSITORY).with_suffix("").parts).removesuffix(".__init__")


# Modules whose names come from elsewhere: name -> the module that has it.
DOORS = {
    name: stub_names(str(ROOT / file))
    for name, file in (
        ("mpifed", "__init__.py"),
        ("mpifed.extend", "extend.py"),
        ("mpifed.theory", "theory/__init__.py"),
        ("mpifed.algorithms.parts", "algorithms/parts/__init__.py"),
    )
}


def home(node: ast.ImportFrom, name: str) -> str:
    """The module from which an import really takes a name, also where it goes through a door."""
    return DOORS.get(node.module or "", {}).get(name, node.module or "")


def package_imports(path: Path) -> set[str]:
    """The modules of the package from which a file imports, inside functions and for types alone too."""
    return {
        node.module or ""
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "mpifed"
    }


def widest() -> tuple[str, int]:
    """The module that imports most others of the package, and how many."""
    counts = {module(path): len(package_imports(path)) for path in SOURCES}
    return max(counts.items(), key=lambda item: item[1])


def derived_from_seams() -> list[str]:
    """Classes derived from one of SEAMS, over any number of steps, by name within the package."""
    bases: dict[str, set[str]] = {}
    for path in SOURCES:
        for node in nodes(path):
            if isinstance(node, ast.ClassDef):
                names = {ast.unparse(base).rpartition(".")[2].partition("[")[0] for base in node.bases}
                bases.setdefault(node.name, set()).update(names)
    found: set[str] = set()
    while new := {name for name, parents in bases.items() if parents & {*SEAMS, *found}} - found:
        found |= new
    return sorted(found - {*SEAMS})


def proxies() -> list[str]:
    """Classes that pass on what is asked of them by ``__getattr__``."""
    return [
        f"{module(path)}.{node.name}"
        for path in SOURCES
        for node in nodes(path)
        if isinstance(node, ast.ClassDef)
        and any(isinstance(part, ast.FunctionDef) and part.name == "__getattr__" for part in node.body)
    ]


def any_members() -> list[str]:
    """Parameters and attributes that are named as an object of the house and typed Any."""
    found = []
    for path in SOURCES:
        for node in nodes(path):
            pairs: list[tuple[str, ast.expr | None]] = []
            if isinstance(node, ast.FunctionDef):
                arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                pairs = [(one.arg, one.annotation) for one in arguments]
            elif isinstance(node, ast.AnnAssign):
                pairs = [(ast.unparse(node.target).rpartition(".")[2], node.annotation)]
            for name, annotation in pairs:
                if name in HOUSE and annotation is not None and ast.unparse(annotation) == "Any":
                    found.append(f"{module(path)}:{node.lineno} {name}")
    return found


def nodes_of(wanted: Callable[[ast.AST], bool]) -> list[str]:
    """Where nodes of a kind stand in the package."""
    return [f"{module(path)}:{getattr(node, 'lineno', 0)}" for path in SOURCES for node in nodes(path) if wanted(node)]


def asks_for_a_class(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance"


def times_a_condition(node: ast.AST) -> bool:
    """Whether a list or text is multiplied by something that is true or false: ``[x] * (n > 1)``, ``"s" * flag``."""
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult)):
        return False
    sides = (node.left, node.right)
    many = any(isinstance(side, ast.List | ast.JoinedStr) or is_text(side) for side in sides)
    return many and any(is_condition(side) for side in sides)


def is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def is_condition(node: ast.AST) -> bool:
    if isinstance(node, ast.Compare | ast.BoolOp):
        return True
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not)
    if isinstance(node, ast.Call):
        return ast.unparse(node.func) == "bool"
    return isinstance(node, ast.Attribute)  # args.quiet: numbers of things are names or calls, such as len(x)


EXAMPLES = re.compile(r'\n\n *>>> .*?(?=\n *""")', re.S)  # of a docstring, at its end; a test runs them


def lines(path: Path) -> int:
    """The lines of a file without the examples of docstrings."""
    return len(EXAMPLES.sub("", path.read_text("utf-8")).splitlines())


def lines_of(room: str) -> int:
    """The lines of all Python files of a folder of the repository, without the examples of docstrings."""
    return sum(map(lines, (REPOSITORY / room).rglob("*.py")))


def house_widths() -> dict[str, int]:
    """How wide the package is, by meter."""
    return {
        "imports of the widest module": widest()[1],
        "imports of experiment/prepare.py": len(package_imports(ROOT / "experiment" / "prepare.py")),
        "classes derived from a seam": len(derived_from_seams()),
        "proxies": len(proxies()),
        "members of the house typed Any": len(any_members()),
        "isinstance": len(nodes_of(asks_for_a_class)),
        "lists and texts times a condition": len(nodes_of(times_a_condition)),
        "lines of mpifed": lines_of("mpifed"),
        "lines of tests": lines_of("tests"),
        "lines of benchmarks": lines_of("benchmarks"),
    }


def main() -> None:
    if len(sys.argv) > 1:
        codes = entered(RUNS[sys.argv[1]])
        print(
            "\n".join(sorted(f"{'off ' if OFF.match(file_of(c)) else ''}{file_of(c)}: {c.co_qualname}" for c in codes))
        )
        return
    for name in RUNS:
        print(name, run_widths(name))
    for meter, width in house_widths().items():
        print(f"{meter:40} {width}")
    print("widest:", *widest())
    print("seams:", *derived_from_seams())
    print("proxies:", *proxies())
    print("Any:", Counter(place.rpartition(" ")[2] for place in any_members()))
    print("times a condition:", *nodes_of(times_a_condition))


if __name__ == "__main__":
    main()
