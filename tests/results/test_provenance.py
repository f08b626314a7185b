"""The commit of the program, its threads and its CPUs are recorded."""

import os
import subprocess

from threadpoolctl import threadpool_limits

from mpifed.results import provenance
from mpifed.results.recorder import Recorder
from tests.results.conftest import ATTRS


def test_the_commit_is_there_in_a_repository_and_absent_elsewhere(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "git_commit" not in Recorder(None, ATTRS, 4).file.attrs
    author = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for words in (["init", "-q"], [*author, "commit", "-q", "--allow-empty", "-m", "a"]):
        subprocess.run(["git", *words], check=True)
    assert len(Recorder(None, ATTRS, 4).file.attrs["git_commit"]) == 40


def test_cpus_are_ranges_where_the_system_tells_them(monkeypatch):
    for cpus, text in (({0}, "0"), ({0, 1, 2, 3}, "0-3"), ({8, 0, 1, 10, 11}, "0-1,8,10-11"), (set(), "")):
        monkeypatch.setattr(os, "sched_getaffinity", lambda process, cpus=cpus: cpus, raising=False)
        assert provenance.cpus() == text
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    assert provenance.cpus() == ""


def test_threads_are_those_of_blas():
    for threads in (1, 2):
        with threadpool_limits(threads, "blas"):
            assert provenance.threads() == threads
