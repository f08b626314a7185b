"""Every block of the README and of the pages for users, run in order, as copied, in an empty folder."""

import contextlib
import os
import re
import runpy
import shlex
import subprocess
import sys
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import mpifed as api
from mpifed import arrays
from mpifed.experiment import config
from tests.helpers.commands import ROOT, execute, mpifed

README = (ROOT / "README.md").read_text("utf-8")
EVERY = ("README.md", *sorted(f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")))
TORCH = "docs/torch.md"
FENCE = re.compile(r"(?:^<!-- (?P<marker>[^\n]+) -->\n)?^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.M | re.S)
REASONS = re.compile(r"skip: (needs SLURM|needs a network|needs torch|needs Open MPI|takes .+)")


COMMANDS = runpy.run_path(str(ROOT / "docs" / "commands.py"))
UNBROKEN = 2  # lines of the gallery within a quotation


class Block(NamedTuple):
    marker: str
    language: str
    text: str


def blocks(page: str) -> list[Block]:
    """The code blocks of a page, each with the comment right above it."""
    text = (ROOT / page).read_text("utf-8")
    return [Block(found["marker"] or "", found["language"], found["text"]) for found in FENCE.finditer(text)]


def runs(block: Block) -> bool:
    """Whether a block is run, and not left out or only saved."""
    return block.language in ("bash", "python") and block.marker.partition(":")[0] not in ("file", "skip", "test")


def test_the_site_breaks_long_commands_and_they_stay_the_same():
    def words(text):
        return [" ".join(word.split()) for word in shlex.split(text.replace("\\\n", " "), comments=True)]

    shell = [block.text for page in EVERY for block in blocks(page) if block.language == "bash"]
    broken = [COMMANDS["broken"](text) for text in shell]
    assert list(map(words, broken)) == list(map(words, shell))
    wide = [line for text in broken for line in text.splitlines() if len(line) > COMMANDS["WIDE"]]
    assert len(wide) <= UNBROKEN, wide
    assert sum(text.count(" \\\n") for text in broken) > 50 + sum(text.count(" \\\n") for text in shell)
    long = f"mpifed run 'a b {'c' * 60}' algorithm=gd rounds=30  # Newton's method\n"
    assert COMMANDS["broken"](long).splitlines() == [
        f"mpifed run 'a b {'c' * 60}' \\",
        "    algorithm=gd rounds=30  # Newton's method",
    ]


def test_commands_of_the_readme_fit_into_a_page():
    shell = [line for block in blocks("README.md") if block.language == "bash" for line in block.text.splitlines()]
    assert [line for line in shell if len(line) > 88] == []


PAGES = [page for page in EVERY if page != TORCH and any(map(runs, blocks(page)))]


def run(block: Block, folder: Path) -> None:
    """Run a block of bash or Python in ``folder``, with the Python and the mpirun of this environment first."""
    shell = ["bash", "-euo", "pipefail", "-c"] if block.language == "bash" else [sys.executable, "-c"]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = execute([*shell, block.text], 240, folder, PATH=path)
    assert done.code == 0, f"{block.text}\n{done.out}\n{done.err}"


def run_here(block: Block, folder: Path) -> None:
    """The same in this process, which has imported PyTorch already, but for what mpirun starts."""
    commands = block.text.replace("\\\n", "").splitlines()
    if block.language == "python":
        with contextlib.chdir(folder), warnings.catch_warnings(action="default"):
            exec(block.text, {"__name__": "__main__"})
    elif all(line.startswith("python -m mpifed ") for line in commands):
        for line in commands:
            done = mpifed(*shlex.split(line)[3:], cwd=folder)
            assert done.code == 0, f"{line}\n{done.out}\n{done.err}"
    else:
        run(block, folder)


SLOW_TORCH = (pytest.mark.slow, pytest.mark.torch)


@pytest.mark.parametrize(
    "page", [*(pytest.param(page, marks=pytest.mark.slow) for page in PAGES), pytest.param(TORCH, marks=SLOW_TORCH)]
)
def test_blocks_run_in_order_as_copied(page, tmp_path, monkeypatch):
    if page == TORCH:
        pytest.importorskip("torch", reason="PyTorch is not there: pip install mpifed[torch]")
        monkeypatch.syspath_prepend(tmp_path)
    for block in blocks(page):
        kind, _, name = block.marker.partition(": ")
        if kind == "file":
            (tmp_path / name).write_text(block.text, "utf-8")
        elif kind == "run":
            run(block._replace(text=block.text.partition(" && ")[2]), tmp_path)
        elif runs(block):
            (run_here if page == TORCH else run)(block, tmp_path)


@pytest.mark.parametrize("page", EVERY)
def test_a_block_is_left_out_for_a_reason(page):
    for block in blocks(page):
        kind = block.marker.partition(":")[0]
        assert kind in ("", "file", "run", "test", "skip"), block.marker
        assert kind != "skip" or REASONS.fullmatch(block.marker), block.marker


def test_the_two_commands_stay_where_scripts_look_for_them():
    found = {block.marker: block.text for block in blocks("README.md") if block.marker in ("run", "test")}
    assert found == {
        "run": 'pip install -e ".[mpich]" && mpirun -n 5 python -m mpifed\n',
        "test": 'pip install -e ".[mpich,test]" && python -m pytest\n',
    }


def test_the_first_screen_is_what_the_run_prints(tmp_path):
    (sample,) = (block.text for block in blocks("README.md") if block.language == "text")
    shown = mpifed(cwd=tmp_path).out
    names, end, *curves = (line for line in sample.splitlines() if line)
    assert names.partition(", 5 ranks")[0] in shown
    assert end.partition(" · started")[0] in shown
    assert len(curves) == 2
    assert all(f"{line}\n" in shown for line in curves)


def test_a_mistake_is_answered_as_the_page_says():
    text = (ROOT / "docs" / "experiments.md").read_text("utf-8")
    ranks, command, answer = re.search(r"\$ mpirun -n (\d) python -m mpifed (.*)\n(mpifed: .*)\n", text).groups()
    done = mpifed(*command.split(), ranks=int(ranks))
    assert (done.code, done.err.splitlines()[0]) == (2, answer)  # Open MPI's own words may come after


def test_the_robust_mean_of_the_page_withstands_attackers_that_a_mean_does_not(tmp_path):
    (code,) = (block.text for block in blocks("docs/extending.md") if block.marker == "file: robust.py")
    (tmp_path / "robust.py").write_text(code, "utf-8")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 5))
    data = arrays(X, (X @ np.ones(5) > 0).astype(int), rng.integers(20, size=400))

    def end(**options):
        algorithm = {"name": f"{tmp_path}/robust.py:TrimmedMean", "gamma": 1.0} | options
        study = {"problem": "logistic", "selection": "all", "rounds": 30, "algorithm": algorithm}
        return float(api.run(study, data=data, progress=False).rounds["objective"][-1])

    honest = end(trim=0.0, attackers=0.0)
    assert end() < 1.2 * honest < np.log(2) < end(trim=0.0), "log 2 is where it begins"


def test_the_readme_is_two_screens_and_leads_to_every_page():
    linked = set(re.findall(r"\]\(([^)#\s]+)", README))
    assert {f"docs/{path.name}" for path in (ROOT / "docs").glob("*.md")} | {"CONTRIBUTING.md"} <= linked
    assert len(README.splitlines()) <= 160
    assert f"[{len(config.FAMILIES['algorithm'].choices)} methods](docs/reference/methods.md)" in README


def test_the_readme_counts_comparisons_as_their_page_does():
    page = (ROOT / "docs" / "studies" / "agreement.md").read_text("utf-8")
    numbers = re.search(r"(\d+) comparisons with (\d+) programs of other people; in (\d+) of them", page).groups()
    assert (
        re.search(r"\[(\d+) comparisons\]\(\S+\) with (\d+) programs .* agree, (\d+) of them", README).groups()
        == numbers
    )


def test_python_finds_the_package_beside_a_clone_of_the_same_name(tmp_path):
    """A clone is a folder called mpifed, which Python would take for a package where an install is only a hook."""
    (tmp_path / "mpifed").mkdir()
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    command = [sys.executable, "-c", "import mpifed; print(mpifed.extend.Array)"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
