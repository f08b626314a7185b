"""The recipes in jobs/recipes: names and versions agree with pyproject.toml."""

import ast
import re
import shutil
import tomllib

import pytest

from tests.helpers.commands import ROOT, execute

RECIPES = ROOT / "jobs" / "recipes"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
CONDA = {"matplotlib-base": "matplotlib"}  # conda-forge's name -> PyPI's, where they differ


def required(*extras):
    """Name -> lowest version of the dependencies of mpifed with these extras, and of its build."""
    texts = [*PROJECT["dependencies"], *(text for extra in extras for text in PROJECT["optional-dependencies"][extra])]
    return dict(re.fullmatch(r"([\w-]+)>=([\d.]+)", text).groups() for text in texts)


def build():
    (text,) = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["build-system"]["requires"]
    return dict([text.split(">=")])


def python():
    return {"python": PROJECT["requires-python"].removeprefix(">=")}


def test_conda_has_the_dependencies_of_the_package():
    yaml = pytest.importorskip("yaml")
    found = yaml.safe_load((RECIPES / "environment.yml").read_text("utf-8"))
    assert (found["name"], found["channels"]) == ("mpifed", ["conda-forge"])
    versions = dict(re.fullmatch(r"([\w-]+)(?:>=([\d.]+))?", text).groups() for text in found["dependencies"])
    versions = {CONDA.get(name, name): version for name, version in versions.items()}
    assert versions == python() | {"pip": None} | build() | required("mpich", "data", "plot")


def spack():
    """The class of Spack's recipe, and the calls in it, those within ``with`` too: (name, first argument, keywords)."""
    tree = ast.parse((RECIPES / "package.py").read_text("utf-8"))
    (found,) = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    calls = [node.value for node in ast.walk(found) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)]
    return found, [
        (call.func.id, call.args[0].value, {word.arg: ast.literal_eval(word.value) for word in call.keywords})
        for call in calls
    ]


def test_spack_has_the_dependencies_of_the_package():
    found, calls = spack()
    assert (found.name, found.bases[0].id) == ("PyMpifed", "PythonPackage")
    needs = [(text, words.get("when")) for name, text, words in calls if name == "depends_on"]
    versions = {
        when: dict(re.fullmatch(r"(?:py-)?([\w-]+)@([\d.]+):", text).groups() for text, also in needs if also == when)
        for when in (None, "+plot")
    }
    assert versions[None] == python() | build() | required()
    assert versions["+plot"] == {name: version for name, version in required("plot").items() if name not in required()}
    assert ("license", PROJECT["license"], {}) in calls


def sections():
    """Name -> text of the sections of Apptainer's recipe, and the head under "head"."""
    head, *parts = re.split(r"^%(\w+)\n", (RECIPES / "mpifed.def").read_text("utf-8"), flags=re.M)
    return {"head": head, **dict(zip(parts[::2], parts[1::2], strict=True))}


def test_the_container_is_built_from_files_that_are_there():
    found = sections()
    assert found["head"].startswith("Bootstrap: docker\nFrom: ")
    for line in found["files"].split("\n"):
        if line.strip():
            source, target = line.split()
            assert (ROOT / source).exists(), source
            assert target == f"/opt/mpifed/source/{source}"
    extras = re.search(r'"/opt/mpifed/source\[([\w,]+)\]"', found["post"])[1].split(",")
    assert set(extras) <= PROJECT["optional-dependencies"].keys()
    assert not {"mpich", "openmpi"} & set(extras)


@pytest.mark.parametrize("name", ["post", "environment", "runscript", "test"])
def test_the_parts_of_the_container_are_valid_for_its_shell(name, tmp_path):
    (tmp_path / "part.sh").write_text("#!/bin/sh\n" + sections()[name])
    assert execute(["sh", "-n", tmp_path / "part.sh"]).code == 0
    if shutil.which("shellcheck"):
        assert execute(["shellcheck", tmp_path / "part.sh"]).out == ""


def test_python_in_the_container_gets_the_host_mpi(tmp_path):
    said = "$APPTAINERENV_MPI4PY_LIBMPI $APPTAINERENV_LD_LIBRARY_PATH"
    (tmp_path / "apptainer").write_text(f'#!/bin/sh\necho "$*"\necho "{said}"\n')
    (tmp_path / "apptainer").chmod(0o755)
    place = {"PATH": f"{tmp_path}:/usr/bin:/bin", "LD_LIBRARY_PATH": "/opt/fabric"}
    command = [RECIPES / "bin" / "python", "-m", "mpifed", "--version"]
    done = execute(command, MPIFED_IMAGE="m.sif", MPIFED_HOST_MPI="/opt/mpi", **place)
    assert done.out.splitlines() == [
        "exec --bind /opt/mpi m.sif python -m mpifed --version",
        "/opt/mpi/lib/libmpi.so /opt/mpi/lib:/opt/fabric",
    ]
    done = execute(command, MPIFED_HOST_MPI="/opt/mpi", **place)
    assert done.code != 0
    assert "MPIFED_IMAGE: is the file that apptainer built" in done.err


def test_every_recipe_says_what_was_tried():
    for name in ("mpifed.def", "environment.yml", "package.py"):
        text = (RECIPES / name).read_text("utf-8")
        assert re.search(r"^# .*Tried: ", text, re.M), name
        assert "Not tried: " in " ".join(text.split()), name
