"""The commands schema and completion."""

import json
import shutil
import subprocess
import sys

import pytest

from tests.helpers.commands import mpifed

PROBE = """
source ./completion
complete() {{ COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); _shtab_mpifed; echo "${{COMPREPLY[@]}}"; }}
complete
"""


def test_the_schema_is_printed_or_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    printed = mpifed("schema")
    assert mpifed("schema", "-o", "mpifed.schema.json").out.endswith("written to mpifed.schema.json\n")
    assert json.loads((tmp_path / "mpifed.schema.json").read_text("utf-8")) == json.loads(printed.out)
    again = mpifed("schema", "-o", "mpifed.schema.json")
    assert again.code == 2
    assert "mpifed.schema.json exists" in again.err
    assert mpifed("schema", "-o", "mpifed.schema.json", "--force").code == 0


def test_there_is_a_script_for_every_shell_that_completes_commands_and_options(tmp_path):
    pytest.importorskip("shtab")
    for shell in ("tcsh", "zsh", "bash"):
        done = mpifed("completion", shell)
        assert done.code == 0
        assert "mpifed" in done.out
        assert "resume" in done.out
    (tmp_path / "completion").write_text(done.out, "utf-8")
    for words, found in (("mpifed res", "resume"), ("mpifed plot --tit", "--title")) if shutil.which("bash") else ():
        done = subprocess.run(["bash", "-c", PROBE.format(words=words)], cwd=tmp_path, capture_output=True, text=True)
        assert done.stdout.split() == [found]


def test_completion_without_shtab_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)
    done = mpifed("completion", "bash")
    assert done.code == 2
    assert done.err == 'mpifed: completion needs shtab: pip install "mpifed[completion]"\n'
