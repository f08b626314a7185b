"""The house: imports go down only, and what one file alone may do no other does."""
from __future__ import annotations

import ast
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent / "mpifed"
FILES = sorted(ROOT.rglob("*.py"))

LAYERS = [  # from the bottom; a module that is not named stands no lower than what it imports
    {"component", "rng"},
    {"data", "versions"},
    {"problems", "selection", "steps", "stop", "sums", "system"},
    {"local", "privacy", "prox"},
    {"host", "federation"},
    {"algorithms"},
    {"config"},
    {"mpi", "progress", "record", "results"},
    {"experiment"},
    {"launch", "launcher", "describe"},
    {"cli", "__init__", "__main__"},
]
LOW = {"component", "rng", "data", "problems", "selection", "steps", "stop", "sums", "system", "local", "host", "federation",
       "algorithms"}
HIGH = {"mpi", "record", "results", "config", "experiment", "launch", "cli"}


def module(path):
    """mpifed/data/blocks.py -> data.blocks; mpifed/__init__.py -> __init__."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts)


def shown(path):
    """The name of a test's file; with its suffix, for pytest-mpi skips what is called mpi."""
    return str(path.relative_to(ROOT))


MODULES = {module(path) for path in FILES}


def layer(name):
    """The place of a module in LAYERS, or the highest place among what it imports."""
    top = name.split(".")[0]
    found = [k for k, members in enumerate(LAYERS) if top in members]
    return found[0] if found else max((layer(lower) for lower in inside(ROOT / f"{name}.py") & MODULES), default=0)


@cache
def tree(path):
    return ast.parse(path.read_text("utf-8"))


def imports(path):
    """Every imported module, dotted, also those inside functions; of mpifed without the package's name."""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole.removeprefix("mpifed.") in MODULES else node.module


def inside(path):
    """The modules of mpifed that a file imports; the package itself, for its version, left out."""
    return {name.removeprefix("mpifed.") for name in imports(path) if name.startswith("mpifed.")}


def importers(package):
    return {module(path) for path in FILES if any(name.split(".")[0] == package for name in imports(path))}


def calls(path):
    """(name of the function called, call) of every call: print, File, np.random.default_rng …"""
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


each_file = pytest.mark.parametrize("path", FILES, ids=shown)


@each_file
def test_imports_go_down_only(path):
    upward = {name for name in inside(path) & MODULES if layer(name) > layer(module(path))}
    assert not upward, f"{module(path)} imports {', '.join(sorted(upward))}, which stands above it"


@each_file
def test_every_module_that_is_imported_is_there(path):
    assert not inside(path) - MODULES


@pytest.mark.parametrize("path", [path for path in FILES if module(path).split(".")[0] in LOW], ids=shown)
def test_algorithms_problems_and_data_know_nothing_of_runs(path):
    assert not {name.split(".")[0] for name in inside(path)} & HIGH
    assert not {name.split(".")[0] for name in imports(path)} & {"mpi4py", "sys", "argparse"}


def test_no_module_imports_itself_in_a_circle():
    def reach(name, seen):
        for next_one in inside(ROOT / f"{name.replace('.', '/')}.py") & MODULES:
            assert next_one not in seen, f"a circle: {' -> '.join([*seen, next_one])}"
            if next_one not in done:
                reach(next_one, [*seen, next_one])
        done.add(name)

    done: set[str] = set()
    for name in MODULES:
        reach(name, [name])


def test_only_world_imports_mpi4py():
    assert importers("mpi4py") == {"world", "versions"}          # versions: for its version


def test_only_readers_and_the_recorder_import_h5py():
    assert importers("h5py") <= {"data.h5", "netcdf", "record", "results", "versions"}


@pytest.mark.parametrize("path", [path for path in FILES if module(path) not in ("netcdf", "record")], ids=shown)
def test_only_the_recorder_writes_hdf5(path):
    for name, call in calls(path):
        if name.endswith("h5py.File"):
            mode = [*call.args[1:2], *(word.value for word in call.keywords if word.arg == "mode")]
            assert [ast.unparse(m) for m in mode] == ["'r'"], f"{path}:{call.lineno} opens an HDF5 file for writing"


@pytest.mark.parametrize("path", [path for path in FILES if module(path) != "cli"], ids=shown)
def test_only_the_command_line_prints(path):
    assert not [call.lineno for name, call in calls(path) if name in ("print", "pprint", "sys.stdout.write")]


@each_file
def test_random_numbers_come_from_streams(path):
    """Neither numpy's global state nor a generator seeded by the clock; rng.py alone makes generators."""
    used = {ast.unparse(node) for node in ast.walk(tree(path)) if isinstance(node, ast.Attribute)}
    allowed = {"np.random.Generator", "np.random.Philox"} if module(path) == "rng" else {"np.random.Generator"}
    assert {name for name in used if name.startswith(("np.random.", "numpy.random."))} <= allowed
    assert not {name for name in imports(path) if name.split(".")[0] in ("random", "secrets") or name.startswith("numpy.random")}


@each_file
def test_a_file_can_be_read_in_one_sitting(path):
    assert len(path.read_text("utf-8").splitlines()) <= 250


@pytest.mark.parametrize("path", sorted((ROOT / "algorithms").glob("*.py")), ids=shown)
def test_an_algorithm_sets_nothing_on_itself(path):
    for node in ast.walk(tree(path)):
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        assert not any(isinstance(t, ast.Attribute) for t in targets), f"{path}:{node.lineno} sets an attribute"
