"""The benchmarks keep the rules of the house that tests/test_house.py checks for the package."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import benchmarks

ROOT = Path(benchmarks.__file__).parent
TREES = {
    ".".join(path.relative_to(ROOT.parent).with_suffix("").parts).removesuffix(".__init__"): ast.parse(
        path.read_text("utf-8")
    )
    for path in ROOT.rglob("*.py")
}


def imports(tree):
    """The modules of benchmarks that one imports, those inside functions and under TYPE_CHECKING too."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in TREES else node.module for name in names}
    return found & TREES.keys()


def test_no_module_imports_itself_in_a_circle():
    graph = {name: imports(tree) for name, tree in TREES.items()}
    TopologicalSorter(graph).prepare()  # CycleError names the circle
    assert sum(map(len, graph.values())) > len(graph)  # there is something to check


def test_files_can_be_read_in_one_sitting():
    lines = {str(path): len(path.read_text("utf-8").splitlines()) for path in ROOT.rglob("*.py")}
    assert {path: count for path, count in lines.items() if count > 250} == {}


def test_a_line_has_one_thought_and_a_function_can_be_read_in_one_sitting():
    for name, tree in TREES.items():
        for node in ast.walk(tree):
            at = f"{name}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.IfExp):
                assert sum(isinstance(part, ast.IfExp) for part in ast.walk(node)) == 1, f"{at} nests conditions"
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
                assert len(getattr(node.value, "elts", [])) < 3, f"{at} assigns three values"
            elif isinstance(node, ast.FunctionDef):
                words = {a.arg for a in [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]}
                assert node.end_lineno - node.lineno < 40, at
                assert len(words - {"self", "cls"}) <= 6, at
