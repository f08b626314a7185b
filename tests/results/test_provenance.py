"""The commit of the program is recorded."""

from __future__ import annotations

import subprocess

from mpifed.results.recorder import Recorder
from tests.results.conftest import ATTRS


def test_the_commit_is_there_in_a_repository_and_absent_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "git_commit" not in Recorder(None, ATTRS, 4).file.attrs
    author = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], [*author, "commit", "-q", "--allow-empty", "-m", "a"]):
        subprocess.run(["git", *words], check=True)
    assert len(Recorder(None, ATTRS, 4).file.attrs["git_commit"]) == 40
