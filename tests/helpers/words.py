"""Meters of the house's language and doors: what a newcomer has to learn before he reads or writes a part.

``python -m tests.helpers.words`` prints every number; with a meter's name behind it, what that meter counts.
"""

import ast
import builtins
import re
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from tests.helpers.meters import DOORS, ROOT, SOURCES, home, module, nodes, tree

DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
ODD = re.compile(r"(What|Whether|Which|The same)\b")
BY_METHODS = {"Client", "Server"}  # every method has its own
RULES = {"Conflict", "refused", "UserError"}
REFUSING = re.compile(r"_?(refuse|guard)")


def definitions() -> Iterator[tuple[Path, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]]:
    for path in SOURCES:
        for node in nodes(path):
            if isinstance(node, DEFINITIONS):
                yield path, node


def type_names(path: Path) -> Iterator[str]:
    """The classes and aliases of types that a module defines."""
    for node in tree(path).body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name[0].isupper() and not name.isupper():
                yield name


def homonyms() -> list[str]:
    """Type names that two or more modules define."""
    places = defaultdict(set)
    for path in SOURCES:
        for name in type_names(path):
            places[name].add(module(path))
    return [
        f"{name}: {' '.join(sorted(found))}"
        for name, found in places.items()
        if len(found) > 1 and name not in BY_METHODS
    ]


def participles() -> list[str]:
    """Names of functions and classes that end in -ed."""
    return sorted({node.name for _, node in definitions() if node.name.endswith("ed")})


def odd_docstrings() -> list[str]:
    """Functions, classes and modules whose docstring begins with What, Whether, Which or The same."""
    texts = [(f"{module(path)}.{node.name}", ast.get_docstring(node)) for path, node in definitions()]
    texts += [(module(path), ast.get_docstring(tree(path))) for path in SOURCES]
    return [name for name, text in texts if text and ODD.match(text)]


@cache
def public_names() -> frozenset[str]:
    """The names that users and authors of plug-ins import."""
    return frozenset(name for names in DOORS.values() for name in names)


def is_public(node: ast.ImportFrom, name: str) -> bool:
    """Whether a user may import a name from there: a door, a table of classes, the file of a method or of theorems."""
    if node.module in DOORS:
        return name in DOORS[node.module]
    return bool(re.match(r"mpifed\.(algorithms|theory)\.(?!bases)\w+$|mpifed\.compressors$", node.module or ""))


def private_imports(path: Path) -> set[str]:
    """The names of the package, outside a feature's own folder, that a file imports and no user could."""
    if path.parent.name == "algorithms":
        return {
            alias.name
            for node in nodes(path)
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mpifed.")
            for alias in node.names
            if not is_public(node, alias.name)
        }
    own = re.match(r"mpifed\.(features\.\w+|networks)\.", module(path))
    return {
        alias.name
        for node in nodes(path)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("mpifed.")
        for alias in node.names
        if alias.name not in public_names() and not (own and f"{node.module}.".startswith(own[0]))
    }


def private_names(folder: str) -> list[str]:
    files = [
        path for path in (ROOT / folder).glob("*.py" if folder == "algorithms" else "**/*.py") if path.stem[0] != "_"
    ]
    return sorted(set().union(*map(private_imports, files)))


def files_with_private_names() -> list[str]:
    """Files of methods and features that a user could not have written."""
    files = [*(ROOT / "algorithms").glob("*.py"), *(ROOT / "features").rglob("*.py")]
    return [module(path) for path in files if private_imports(path)]


def class_of(path: str, name: str) -> ast.ClassDef:
    return next(node for node in tree(ROOT / path).body if isinstance(node, ast.ClassDef) and node.name == name)


def members_of_a_plugin() -> list[str]:
    """What an author of a plug-in may override."""
    body = class_of("features/feature.py", "Plugin").body
    names = [node.target.id for node in body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)]
    names += [node.name for node in body if isinstance(node, ast.FunctionDef)]
    return [name for name in names if not name.startswith("_")]


SLOT = re.compile(r"(list|dict)\[|Any$|.*\| None$")  # of an attribute: its type
SLOTS = (
    ("federation/host.py", "Host"),
    ("federation/server.py", "Federation"),
    ("federation/calls.py", "ClientCaller"),
)


def slots() -> list[str]:
    """Lists and tables of hosts and servers that things are put into, and what one may set in their place."""
    found = []
    for path, name in SLOTS:
        cls = class_of(path, name)
        for node in ast.walk(cls):
            if isinstance(node, ast.AnnAssign) and SLOT.match(ast.unparse(node.annotation)):
                target = ast.unparse(node.target)
                if re.match(r"self\.[a-z]", target) or node in cls.body:
                    found.append(f"{name}.{target.removeprefix('self.')}")
    return found


def refusing_lines() -> list[str]:
    """Lines that only refuse: modules of guards, functions that raise or return nothing, rules, ifs that raise."""
    found = []
    for path in SOURCES:
        lines: set[int] = set()
        if "guard" in path.stem:
            lines.update(range(1, len(path.read_text("utf-8").splitlines()) + 1))
        for node in nodes(path):
            if refuses(node):
                lines.update(range(node.lineno, (node.end_lineno or 0) + 1))
        found += [f"{module(path)}:{line}" for line in sorted(lines)]
    return found


def refuses(node: ast.AST) -> bool:
    if isinstance(node, ast.FunctionDef):
        inside = list(ast.walk(node))
        gives = any(isinstance(one, ast.Return) and one.value for one in inside)
        sets = any(isinstance(one, ast.Attribute) and isinstance(one.ctx, ast.Store) for one in inside)
        raises = any(isinstance(one, ast.Raise) for one in inside)
        return bool(REFUSING.match(node.name)) or (raises and not gives and not sets and not any(map(is_yield, inside)))
    if isinstance(node, ast.If):
        return all(isinstance(one, ast.Raise) for one in node.body) and not node.orelse
    return isinstance(node, ast.Raise) or (isinstance(node, ast.Call) and ast.unparse(node.func) in RULES)


def is_yield(node: ast.AST) -> bool:
    return isinstance(node, ast.Yield | ast.YieldFrom)


def names_to_know(path: str = "algorithms/fedgia.py") -> list[str]:
    """The names that a reader of a method meets and that the file does not define: imports, attributes, keywords."""
    used, known = set(), {*dir(builtins), "self"}
    for node in nodes(ROOT / path):
        if isinstance(node, DEFINITIONS):
            known.add(node.name)
        elif isinstance(node, ast.arg):
            known.add(node.arg)
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            known |= {part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)}
        elif isinstance(node, ast.For | ast.comprehension):
            known |= {part.id for part in ast.walk(node.target) if isinstance(part, ast.Name)}
        if isinstance(node, ast.Name):
            used.add(node.id)
        elif isinstance(node, ast.Attribute):
            used.add(node.attr)
        elif isinstance(node, ast.keyword) and node.arg:
            used.add(node.arg)
    return sorted(used - known)


def importers() -> dict[str, set[str]]:
    """The modules that import each module by its name, or a name of it."""
    found: dict[str, set[str]] = {module(path): set() for path in SOURCES}
    for path in SOURCES:
        for node in nodes(path):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    source = home(node, alias.name)
                    name = f"{source}.{alias.name}"
                    for imported in {name} & found.keys() or {source} & found.keys():
                        found[imported].add(module(path))
    return found


def with_one_importer() -> list[str]:
    return [name for name, users in importers().items() if len(users) == 1]


def short_modules() -> list[str]:
    return [module(p) for p in SOURCES if p.stem != "__init__" and len(p.read_text("utf-8").splitlines()) < 40]


METERS: dict[str, Callable[[], list[str]]] = {
    "homonyms": homonyms,
    "names in -ed": participles,
    "odd docstrings": odd_docstrings,
    "private names of methods": lambda: private_names("algorithms"),
    "private names of features": lambda: private_names("features"),
    "private names of networks": lambda: private_names("networks"),
    "files with private names": files_with_private_names,
    "members of a plug-in": members_of_a_plugin,
    "slots of hosts and servers": slots,
    "refusing lines": refusing_lines,
    "names to know in fedgia.py": names_to_know,
    "modules": lambda: [module(path) for path in SOURCES],
    "modules with one importer": with_one_importer,
    "modules below 40 lines": short_modules,
}


def main() -> None:
    if len(sys.argv) > 1:
        print(*METERS[sys.argv[1]](), sep="\n")
        return
    for name, meter in METERS.items():
        print(f"{name:40} {len(meter())}")


if __name__ == "__main__":
    main()
