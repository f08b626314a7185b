"""Run a program of benchmarks.speed in this process."""

import csv
import sys
from importlib import import_module

import pytest


@pytest.fixture
def printed(monkeypatch, capsys):
    """A function that runs a program with words, and returns the lines that it prints."""

    def run(name, *words):
        monkeypatch.setattr(sys, "argv", [name, *map(str, words)])
        import_module(f"benchmarks.speed.{name}").main()
        return capsys.readouterr().out.splitlines()

    return run


def rows(path):
    """The rows of a table, by the names of its columns."""
    with path.open(newline="") as file:
        return list(csv.DictReader(file))
