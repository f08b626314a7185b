"""The notebooks of the docs: small, up to date, and they run from a clean kernel without a warning."""

import ast
import json
import re

import pytest

import mpifed
from tests.helpers.commands import ROOT

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))
LARGEST = 300_000  # bytes
SECONDS = 120  # of a cell, at most
CLOSE = 0.02  # numbers may differ by this much between machines
NUMBER = re.compile(r"\d+\.\d+(?:e[-+]\d+)?")
LINK = re.compile(r"\]\(([^)#]+)[^)]*\)")
notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells(path, kind):
    """The texts of the cells of a kind, and the outputs of each."""
    found = json.loads(path.read_text("utf-8"))["cells"]
    return [("".join(cell["source"]), cell.get("outputs", [])) for cell in found if cell["cell_type"] == kind]


def texts(outputs):
    """What the outputs of a cell say as plain text, pictures as their size and what goes to stderr left out."""
    found = []
    for output in outputs:
        if output["output_type"] == "stream" and output["name"] == "stdout":
            found.append("".join(output["text"]))
        elif output["output_type"] in ("execute_result", "display_data"):
            found.append("".join(output["data"]["text/plain"]))
        assert output["output_type"] != "error", output
    return "\n".join(found)


def test_there_are_five_and_the_page_leads_to_them():
    page = (ROOT / "docs" / "python.md").read_text("utf-8")
    assert len(NOTEBOOKS) == 5
    assert all(f"(notebooks/{path.name})" in page for path in NOTEBOOKS)


@notebook
def test_it_is_small_and_stored_with_outputs_but_without_what_changes_with_every_run(path):
    assert path.stat().st_size < LARGEST
    stored = json.loads(path.read_text("utf-8"))
    assert stored["metadata"]["kernelspec"]["name"] == "python3"
    code = [cell for cell in stored["cells"] if cell["cell_type"] == "code"]
    assert all(cell["execution_count"] is None and "execution" not in cell["metadata"] for cell in code)
    assert sum(bool(cell["outputs"]) for cell in code) >= 5


@notebook
def test_it_takes_public_names_only_and_its_links_lead_somewhere(path):
    for text, _ in cells(path, "code"):
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom):
                assert str(node.module).partition(".")[0] != "mpifed"
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "mpifed":
                assert node.attr in mpifed.__all__
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "mpifed.extend":
                assert node.attr in mpifed.extend.__all__
    for text, _ in cells(path, "markdown"):
        for target in LINK.findall(text):
            assert (path.parent / target).resolve().exists(), target


@notebook
@pytest.mark.slow
def test_it_runs_from_a_clean_kernel_without_a_warning_and_says_what_is_stored(path, tmp_path):
    nbformat = pytest.importorskip("nbformat", reason="nbformat comes with the extra notebook")
    client = pytest.importorskip("nbclient", reason="nbclient comes with the extra notebook")
    for extra in ("matplotlib", "pandas", "sklearn", "ipykernel"):
        pytest.importorskip(extra, reason=f"{extra} comes with the extra notebook")
    if any("import torch" in text for text, _ in cells(path, "code")):
        pytest.importorskip("torch", reason="PyTorch is not there: pip install mpifed[torch]")
    stored = nbformat.read(path, 4)
    run = nbformat.read(path, 4)
    run.cells.insert(0, nbformat.v4.new_code_cell("import warnings; warnings.simplefilter('error')"))
    resources = {"metadata": {"path": str(tmp_path)}}
    client.NotebookClient(run, timeout=SECONDS, kernel_name="python3", resources=resources).execute()
    for old, new in zip(stored.cells, run.cells[1:], strict=True):
        if old.cell_type == "code":
            before, now = texts(old.outputs), texts(new.outputs)
            assert NUMBER.sub("#", now).split() == NUMBER.sub("#", before).split(), (
                "run the notebook again and store it"
            )
            values = [list(map(float, NUMBER.findall(text))) for text in (now, before)]
            assert values[0] == pytest.approx(values[1], rel=CLOSE, abs=CLOSE / 10)
