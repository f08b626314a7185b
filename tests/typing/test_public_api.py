"""The public API: what it is, and that a program made of it runs and is right for a type checker."""

import ast
import importlib.util
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import mpifed
from mpifed.algorithms import parts
from mpifed.checking import check as checking
from mpifed.cli.describe import KINDS
from tests.helpers.commands import ROOT, execute

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PROGRAM = Path(__file__).with_name("public_api.py")
WRONG = Path(__file__).with_name("wrong_calls.py")


DOORS = [mpifed, mpifed.extend, mpifed.theory]


def used(door):
    """The names of a door that the program takes."""
    tree = ast.parse(PROGRAM.read_text("utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == door.__name__]
    imported = {alias.name for node in imports for alias in node.names}
    attributes = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    called = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert imported <= called, f"imported and not used: {imported - called}"
    return imported | {node.attr for node in attributes if ast.unparse(node.value) == door.__name__}


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.__name__)
def test_the_program_takes_every_public_name(door):
    assert used(door) == set(door.__all__)


def test_authors_need_at_most_forty_names_of_the_engine():
    assert len(mpifed.extend.__all__) <= 40


def test_no_name_has_two_places():
    places = Counter(name for door in [*DOORS, parts] for name in door.__all__)
    assert [name for name, count in places.items() if count > 1] == []


def test_it_runs(tmp_path, monkeypatch):
    """But for the checks that start ranks and processes, as they do in tests/contract."""
    monkeypatch.setattr(checking, "EVERY", checking.EVERY[:3])
    spec = importlib.util.spec_from_file_location("public_api", PROGRAM)
    program = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    result = program.study(tmp_path / "out.h5")
    assert (result.status, result.cr, result.m) == ("finished", 20, 6)
    assert np.abs(result.x - 1).max() < 0.3
    assert program.certified().holds
    assert 0 < program.every_family() < 0.1
    assert "| objective |" in program.in_memory(tmp_path / "again.h5")


@pytest.mark.parametrize("door", [*DOORS, parts], ids=lambda door: door.__name__)
def test_names_are_what_type_checkers_are_told(door):
    """Every import of the stub is a name that a program finds, and is exported by that stub."""
    tree = ast.parse(Path(door.__file__).with_suffix(".pyi").read_text("utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    homes = {alias.asname: node.module for node in imports for alias in node.names}
    assert homes.keys() == set(door.__all__) - {"__version__"}
    assert all(alias.asname == alias.name for node in imports for alias in node.names)
    for name, home in homes.items():
        assert getattr(door, name) is getattr(importlib.import_module(home), name)


def declaration(kind):
    """The stub of a room of components, or the class of a smaller family in the stub of all these."""
    room = ROOT / "mpifed" / kind / "__init__.pyi"
    if room.exists():
        return ast.parse(room.read_text("utf-8"))
    families = ast.parse((ROOT / "mpifed" / "api" / "families.pyi").read_text("utf-8"))
    return next(node for node in families.body if isinstance(node, ast.ClassDef) and node.name == kind)


@pytest.mark.parametrize("kind", KINDS)
def test_every_member_of_a_family_is_an_attribute_and_type_checkers_know_it(kind):
    namespace, choices = getattr(mpifed, kind), KINDS[kind].choices
    members = [name for name in dir(namespace) if not name.startswith("_")]
    assert sorted(members) == sorted(place.partition(":")[2] for place in choices.values())
    for name, place in choices.items():
        assert getattr(namespace, place.partition(":")[2]) is KINDS[kind].member(name, kind)
    declared = {
        f"{node.module}:{alias.name}"
        for node in ast.walk(declaration(kind))
        if isinstance(node, ast.ImportFrom) and node.module not in ("__future__", "typing", "mpifed.core.component")
        for alias in node.names
    }
    assert declared == set(choices.values())


def test_an_unknown_name_is_an_attribute_error_and_a_misspelt_member_with_the_right_name():
    with pytest.raises(AttributeError, match=r"^module 'mpifed' has no attribute 'fedgia'$"):
        _ = mpifed.fedgia
    told = "module 'mpifed.algorithms' has no attribute 'FedGia'; did you mean 'FedGiA'?"
    with pytest.raises(AttributeError, match=f"^{re.escape(told)}$"):
        _ = mpifed.algorithms.FedGia
    assert set(dir(mpifed)) == set(mpifed.__all__)


def test_importing_it_imports_neither_numpy_nor_mpi():
    done = execute([sys.executable, "-c", "import mpifed, sys; print(*sys.modules)"])
    assert not {"numpy", "mpi4py", "h5py", "msgspec"} & set(done.out.split())


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_programs_in_the_pages_import_public_names_only(page):
    public = {door.__name__: set(door.__all__) for door in [*DOORS, parts]}
    for program in re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S):
        for node in ast.walk(ast.parse(program)):
            if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "mpifed":
                assert {alias.name for alias in node.names} <= public[node.module], f"{page.name}: {node.module}"
            if isinstance(node, ast.Import):
                assert not any(alias.name.startswith("mpifed.") for alias in node.names), page.name


EXAMPLE = re.compile(r"^<!-- file: (\w+\.py) -->\n```python\n(.*?)^```$", re.M | re.S)


@pytest.mark.slow
def test_mypy_strict_accepts_the_program_and_the_examples_and_finds_wrong_calls(tmp_path):
    """As a user's programs: without the settings of this repository."""
    pytest.importorskip("mypy", reason="mypy comes with the extra dev")
    for page in ("extending.md", "extending-reference.md"):
        for name, text in EXAMPLE.findall((ROOT / "docs" / page).read_text("utf-8")):
            (tmp_path / name).write_text(text, "utf-8")
    files = [PROGRAM, WRONG, *sorted(tmp_path.iterdir())]
    words = ["--config-file=", "--strict", "--follow-imports=silent", "--no-incremental"]
    words += ["--disable-error-code=import-untyped"]  # scipy has no types
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *words, *map(str, files)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    found = {(Path(path).name, int(line)) for path, line in re.findall(r"^(.*?):(\d+): error", done.stdout, re.M)}
    lines = enumerate(WRONG.read_text("utf-8").splitlines(), 1)
    assert found == {(WRONG.name, k) for k, line in lines if line.endswith("# error")}, done.stdout + done.stderr
