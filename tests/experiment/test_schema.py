"""The JSON schema of experiment files accepts what mpifed accepts, and refuses misspelt keys and wrong values."""

import re
import tomllib

import jsonschema
import msgspec
import pytest

from mpifed.cli.editors import experiment_schema
from mpifed.core.component import fields_of
from mpifed.core.toml import from_toml
from mpifed.experiment.config import FAMILIES, experiment
from tests.helpers.commands import ROOT

SCHEMA = experiment_schema()
CHECK = jsonschema.Draft202012Validator(SCHEMA)
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


@pytest.mark.parametrize("key", FAMILIES)
def test_every_name_is_valid_alone_and_as_a_table_of_its_own_keys(key):
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    for name in FAMILIES[key].choices:
        assert CHECK.is_valid({key: name})
        fields = fields_of(FAMILIES[key].member(name, key)).values()
        assert CHECK.is_valid({key: {"name": name}}) == (not any(field.required for field in fields)), name
        assert not CHECK.is_valid({key: {"name": name, "no such key": 1}}), name


def test_the_complete_configuration_of_a_run_and_experiment_files_in_the_pages_are_valid():
    solver = {"name": "gd", "steps": 3}
    table = experiment({"algorithm": {"name": "feddcd", "solver": solver}, "system": {"speed": 1e4}})
    CHECK.validate(msgspec.to_builtins(table))
    CHECK.validate(from_toml(table.toml(), "it"))
    for path in PAGES:
        for block in re.findall(r"<!-- file: \S+\.toml -->\n```toml\n(.*?)```", path.read_text("utf-8"), re.S):
            if not re.search(r"^\[(project|env|tune)", block, re.M):
                CHECK.validate(tomllib.loads(block))


@pytest.mark.parametrize(
    "table",
    [
        {"round": 3},
        {"rounds": -1},
        {"rounds": "many"},
        {"dtype": "float16"},
        {"algorithm": {"name": "fedgia", "k0": 0}},
        {"algorithm": {"k": 3}},
        {"problem": {"lamb": 0.1}},
        {"data": {"name": "digits", "partition": {"name": "dirichlet", "alfa": 1}}},
        {"stop": {"gradient_scale": "m"}},
    ],
    ids=str,
)
def test_what_a_run_refuses_is_refused_but_plugins_may_have_any_keys(table):
    assert not CHECK.is_valid(table)
    for fine in ({}, {"algorithm": "mine.py:Mine"}, {"algorithm": {"name": "mine.py:Mine", "a": 1}}):
        CHECK.validate(fine)
