"""The public API: what it is, and that a program made of it runs and is right for a type checker."""

import ast
import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mpifed
from mpifed.cli.describe import KINDS
from tests.helpers.commands import ROOT, execute

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
PROGRAM = Path(__file__).with_name("public_api.py")


def used():
    """The public names that the program takes."""
    tree = ast.parse(PROGRAM.read_text("utf-8"))
    (imports,) = (node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == "mpifed")
    imported = {alias.name for alias in imports.names}
    attributes = {
        node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "mpifed"
    }
    called = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    assert imported <= called, f"imported and not used: {imported - called}"
    return imported | attributes


def test_the_program_takes_every_public_name():
    assert used() == set(mpifed.__all__)


def test_it_runs(tmp_path):
    spec = importlib.util.spec_from_file_location("public_api", PROGRAM)
    program = sys.modules[spec.name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    result = program.study(tmp_path / "out.h5")
    assert (result.status, result.cr, result.m) == ("finished", 20, 6)
    assert np.abs(result.x - 1).max() < 0.3
    assert program.certified().holds
    assert 0 < program.every_family() < 0.1
    assert "| objective |" in program.in_memory(tmp_path / "again.h5")


def test_names_are_what_type_checkers_are_told():
    """Every import of the stub is a name that a program finds."""
    tree = ast.parse((ROOT / "mpifed" / "__init__.pyi").read_text("utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert {alias.asname: node.module for node in imports for alias in node.names} == mpifed.PUBLIC
    for name, home in mpifed.PUBLIC.items():
        assert getattr(mpifed, name) is getattr(importlib.import_module(home), name)


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
    for program in re.findall(r"^```python\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S):
        for node in ast.walk(ast.parse(program)):
            if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "mpifed":
                assert node.module == "mpifed", f"{page.name}: from {node.module} import"
                assert {alias.name for alias in node.names} <= set(mpifed.__all__)
            if isinstance(node, ast.Import):
                assert not any(alias.name.startswith("mpifed.") for alias in node.names), page.name


@pytest.mark.slow
def test_mypy_strict_accepts_the_program():
    """As a user's program: without the settings of this repository."""
    pytest.importorskip("mypy", reason="mypy comes with the extra dev")
    words = ["--config-file=", "--strict", "--follow-imports=silent", "--no-incremental", str(PROGRAM)]
    done = subprocess.run([sys.executable, "-m", "mypy", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
