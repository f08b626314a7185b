"""The experiment file and its JSON schema: keys have defaults, what is written is read back, mistakes are told."""

import re
import tomllib
from copy import deepcopy

import jsonschema
import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpifed.cli.editors import experiment_schema
from mpifed.core.component import Component, StudyTable, fields_of, walk_type
from mpifed.core.errors import UserError
from mpifed.core.toml import flatten, from_toml, toml_value
from mpifed.experiment.config import DEFAULT_STUDY, FAMILIES, experiment, override, read_experiment
from tests.helpers.commands import ROOT


def told(assignment, table=None):
    """The experiment that a table with overrides describes."""
    return experiment(override(deepcopy(table or {}), [assignment] if isinstance(assignment, str) else assignment))


def test_no_stop_rule_is_on_but_in_the_default_study():
    assert experiment({}).stop.gradient == 0
    assert DEFAULT_STUDY.keys() == {"stop"}
    assert experiment(DEFAULT_STUDY).stop.gradient > 0


@pytest.mark.parametrize(
    ("data", "problem"), [("linreg-noniid", "least-squares"), ("quadratic", "quadratic"), ("qot", "logistic")]
)
def test_the_problem_goes_with_the_data_unless_it_is_named(data, problem):
    assert experiment({"data": data}).problem.label() == problem
    assert experiment({"data": {"name": data}}).problem.label() == problem
    assert experiment({"data": data, "problem": "nonconvex-logistic"}).problem.label() == "nonconvex-logistic"


def test_options_of_a_problem_do_not_need_its_name_and_a_bare_name_is_a_table():
    run = experiment({"data": "qot", "problem": {"mu": 0.5}})
    assert (run.problem.label(), run.problem.mu) == ("logistic", 0.5)
    assert experiment({"algorithm": "fedavg"}) == experiment({"algorithm": {"name": "fedavg"}})
    assert type(experiment({"stop": {"optimum": 3}}).stop.optimum) is float


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
def test_every_name_builds_a_component_of_that_name_which_explains_itself_and_its_keys(family):
    for name in family.choices:
        cls = family.member(name, "family")
        assert cls.label() == name
        assert issubclass(cls, family)
        needed = {field.name: "file" for field in msgspec.structs.fields(cls) if field.required}
        assert family.build({"name": name, **needed}, "family").label() == name
        assert len(cls.__doc__.splitlines()[0]) > 10
        for field in msgspec.structs.fields(cls):
            tables = [kind for kind in walk_type(field.type) if isinstance(kind, type) and issubclass(kind, StudyTable)]
            assert tables or "description=" in str(field.type), f"{name}.{field.name} has no description"


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
numbers = st.floats(0, 1e300, exclude_min=True, allow_subnormal=False)


def table(name=None, needed=None, **options):
    """Tables of this name with what they need, and some of the options."""
    named = {} if name is None else {"name": st.just(name)}
    return st.fixed_dictionaries(named | (needed or {}), optional=options)


algorithms = (
    table("fedgia", k0=st.integers(1, 99), H=st.sampled_from(["diagonal", "gram", "zero"]), t=numbers)
    | table(
        "fedavg",
        scale=st.sampled_from(["1", "1/m"]),
        step=st.sampled_from(["log2", "constant", "sqrt-samples"]) | table("constant", {"a": numbers}),
    )
    | table("fedadmm", eps0=st.floats(0, 9), nu=st.floats(0.01, 0.99))
)
sizes = st.lists(st.integers(1, 99), min_size=1, max_size=5)
partitions = st.sampled_from(["iid", "sizes"]) | table("sizes", {"sizes": sizes})
tables = table(
    seed=st.integers(0, 2**63 - 1),
    rounds=st.integers(0, 10**9),
    dtype=st.sampled_from(["float32", "float64"]),
    data=table("file", {"path": words}, clients=st.integers(1, 10**6), partition=partitions),
    problem=table("logistic", {"mu": numbers}),
    algorithm=algorithms,
    selection=table("replay", {"path": words}, key=words),
    stop=table(gradient=numbers, optimum=st.floats(allow_nan=False, allow_infinity=False)),
    record=table(None, {"personal": st.booleans()}),
)


@given(tables)
def test_the_complete_file_has_every_key_that_has_a_value_and_describes_the_same_experiment(table):
    run = experiment(table)
    written = tomllib.loads(run.toml())
    again = experiment(written)
    assert again == run
    assert again.toml() == run.toml()

    def same(struct, table):
        values = {field.encode_name: getattr(struct, field.name) for field in msgspec.structs.fields(struct)}
        values = {name: value for name, value in values.items() if value is not None}
        assert values.keys() | ({"name"} if isinstance(struct, Component) else set()) == set(table)
        for name, value in values.items():
            if isinstance(value, StudyTable):
                same(value, table[name])
            else:
                assert table[name] == value

    same(run, written)


@given(words | numbers | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.lists(words, max_size=3))
def test_values_are_written_as_toml(value):
    assert tomllib.loads(f"x = {toml_value(value)}")["x"] == value


def test_nested_tables_become_dotted_keys_in_their_order():
    table = from_toml('seed = 3\n[data]\nname = "a"\n[data.partition]\nname = "iid"\n[stop]\n', "a text")
    assert list(flatten(table).items()) == [("seed", 3), ("data.name", "a"), ("data.partition.name", "iid")]


SIZES = {"name": "file", "path": "x.h5", "partition": {"name": "sizes", "least": 0.3}}
AVG, GRAM = {"name": "fedavg"}, {"name": "fedgia", "H": "gram"}
STEP = {"step": {"name": "constant", "a": 0.1}}
MU = {"mu": 0.5}


@pytest.mark.parametrize(
    ("assignment", "place", "value"),
    [
        ("seed=3", "seed", 3),
        ("seed = 3", "seed", 3),
        ("dtype=float32", "dtype", "float32"),
        ('dtype="float32"', "dtype", "float32"),
        ("stop.gradient=1e-9", "stop.gradient", 1e-9),
        ("stop.gradient_scale=m^2", "stop.gradient_scale", "m^2"),
        ("record.personal=true", "record.personal", True),
        ("data.partition.sizes=[3, 4]", "data.partition.sizes", [3, 4]),
        ("algorithm.step={name = 'constant', a = 0.5}", "algorithm.step", {"name": "constant", "a": 0.5}),
        ("data.path=/a b/c=d.h5", "data.path", "/a b/c=d.h5"),
        ("data.path=C:\\x.h5", "data.path", "C:\\x.h5"),
        ("data.path=1.h5", "data.path", "1.h5"),
        ("algorithm=fedavg", "algorithm.name", "fedavg"),
        ("algorithm.step=constant", "algorithm.step", "constant"),
        ("algorithm.step.a=0.1", "algorithm.step.a", 0.1),
    ],
)
def test_an_override_is_toml_or_a_bare_word(assignment, place, value):
    found = override({}, [assignment])
    for key in place.split("."):
        found = found[key]
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("table", "assignments", "same"),
    [
        ({"seed": 1, "algorithm": {"t": 3.0}}, ["seed=2", "algorithm.t=4.0"], {"seed": 2, "algorithm": {"t": 4.0}}),
        ({"seed": 1}, ["seed=2", "seed=5"], {"seed": 5}),
        ({"algorithm": {"t": 3.0}}, ["algorithm.k0=4"], {"algorithm": {"t": 3.0, "k0": 4}}),
        ({"algorithm": AVG | {"step": "constant"}}, ["algorithm.step.a=0.1"], {"algorithm": AVG | STEP}),
        ({"algorithm": "fedavg"}, ["algorithm.k0=3"], {"algorithm": AVG | {"k0": 3}}),
        *(
            ({"algorithm": GRAM}, [f"algorithm{name}"], {"algorithm": AVG})
            for name in ("=fedavg", ".name=fedavg", '="fedavg"', "={name = 'fedavg'}")
        ),
        ({"algorithm": {"H": "gram"}}, ["algorithm=fedavg"], {"algorithm": "fedavg"}),
        ({"data": SIZES}, ["data.partition=iid"], {"data": SIZES | {"partition": "iid"}}),
        ({"data": SIZES}, ["data.partition.name=iid"], {"data": SIZES | {"partition": "iid"}}),
        ({"data": "qot", "problem": MU}, ["problem=logistic"], {"data": "qot", "problem": {"name": "logistic"} | MU}),
        ({"algorithm": {"H": "gram"}}, ["algorithm=fedgia"], {"algorithm": GRAM}),
        ({"algorithm": GRAM}, ["algorithm=fedavg", "algorithm.k0=7"], {"algorithm": AVG | {"k0": 7}}),
        ({}, ["algorithm = fedavg"], {"algorithm": "fedavg"}),
    ],
)
def test_overrides_apply_in_order_and_only_another_name_drops_the_options_of_the_old_one(table, assignments, same):
    assert told(assignments, table) == experiment(same)


@pytest.mark.parametrize(
    ("table", "written", "meant"),
    [
        ("data", "fed.h5", "{folder}/fed.h5"),
        ("selection", "../sel.npz", "{folder}/../sel.npz"),
        ("graph", "edges.txt", "{folder}/edges.txt"),
        ("data", "/data/fed.h5", "/data/fed.h5"),
        ("data", "~/fed.h5", "~/fed.h5"),
    ],
)
def test_paths_in_a_file_are_relative_to_the_file(tmp_path, table, written, meant):
    path = tmp_path / "study.toml"
    path.write_text(f'[{table}]\npath = "{written}"\n')
    assert read_experiment(path)[table]["path"] == meant.format(folder=path.parent)
    assert override(read_experiment(path), [f"{table}.path=mine.h5"])[table]["path"] == "mine.h5"


HOT = "h" * 500


@pytest.mark.parametrize(
    ("assignments", "sentence"),
    [
        ("sede=1", "unknown key 'sede'; did you mean 'seed'?"),
        ("selection=zzz", "unknown selection 'zzz'; the choices are all, uniform, poisson, cover, cyclic, importance,"),
        ("data.cleints=3", "unknown key 'data.cleints'; did you mean 'clients'?"),
        ("algorithm.bogus=1", "unknown key 'algorithm.bogus'; the choices are start, lagrangian, k0, H, t"),
        ("problem.mu=1", "unknown key 'problem.mu'; there are none here"),
        ("algorithm.k0=0", "algorithm.k0 = 0 is wrong: it must be a whole number >= 1"),
        ("algorithm.k0=1.5", "algorithm.k0 = 1.5 is wrong: it must be a whole number, not a number"),
        ("algorithm.k0=many", 'algorithm.k0 = "many" is wrong: it must be a whole number, not a text'),
        ("algorithm.H=gramm", 'algorithm.H = "gramm" is wrong: it must be "diagonal" or "gram" or "zero"'),
        ("dtype=float16", 'dtype = "float16" is wrong: it must be "float64" or "float32"'),
        ("seed=-1", "seed = -1 is wrong: it must be a whole number >= 0"),
        (f"seed={2**63}", f"seed = {2**63} is wrong: it must be a whole number >= 0 and <= {2**63 - 1}"),
        ("stop.optimum=soon", 'stop.optimum = "soon" is wrong: it must be a number, not a text'),
        (f"seed={HOT}", f'seed = "{HOT[:99]}…{HOT[:49]}" is wrong: it must be a whole number, not a text'),
        ("record.personal=1", "record.personal = 1 is wrong: it must be true or false, not a whole number"),
        ("evaluate=3", "evaluate = 3 is wrong: evaluate is a table, so write evaluate.KEY = VALUE"),
        ("selection.share=0", "selection.share = 0 is wrong: it must be a number > 0 and <= 1"),
        ("selection.share=nan", "selection.share = nan is wrong: it must be a finite number"),
        ("stop.objective_gap=0.1", "stop: objective_gap needs optimum"),
        ("selection=replay", "selection.path is missing: it has no default"),
        ("compress.up=topk", "compress.up.k is missing"),
        ("compress.feedback=ef", 'compress.feedback = "ef" is wrong: it must be "auto" or "memory"'),
        ("graph=rng", "unknown graph 'rng'; did you mean 'ring'"),
        ("graph={name='ring',loss=1.0}", "graph.loss = 1.0 is wrong: it must be a number >= 0 and < 1"),
        ("data.least=200", "data: least = 200 is more than most = 150"),
        ("data.clients=[4]", "data.clients = [4] is wrong: it must be a whole number, not a list"),
        ("algorithm=5", "algorithm = 5 is wrong: algorithm is a table, such as algorithm.name = 'fedgia'"),
        ("seed.x=1", "seed = {x = 1} is wrong: it must be a whole number"),
        (["seed=1", "seed.x=1"], "'seed.x=1': seed is not a table"),
        ("seed", "'seed' is not an override: write KEY=VALUE, for example algorithm.k0=5"),
        ("algorithm.name=[1]", "unknown algorithm '[1]'; the choices are accfeddcd, "),
        ("algorithm.step.name={a = 1}", "unknown step "),
        ("seed=" + "1" * 5000, 'seed = "111'),
    ],
)
def test_a_mistake_is_told_with_its_key_its_value_and_what_would_be_right(assignments, sentence):
    table = {"algorithm": "fedavg"} if "algorithm.step" in assignments else {}
    with pytest.raises(UserError) as mistake:
        told(assignments, table)
    assert str(mistake.value).startswith(sentence)
    assert "\n" not in str(mistake.value)


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        ([], ""),
        (["seed=0", "algorithm=fedgia", "algorithm.k0=10", "selection.share=0.5"], ""),
        (["seed=1", "stop.gradient=1e-7"], "seed stop.gradient"),
        (["algorithm=fedavg", "algorithm.step={name='constant', a=0.01}"], "algorithm algorithm.step"),
        (["data=digits", "data.partition=dirichlet"], "data data.partition problem"),
        (["selection=all"], "selection"),
        (["data=file", "data.path=fed.h5"], "data data.path"),
        (["system.speed=1e4", "system.dropout=0.1"], "system.speed system.speed.value system.dropout"),
    ],
)
def test_what_is_not_at_its_default_is_known(words, keys):
    assert sorted(experiment(override({}, words)).changed_keys()) == sorted(keys.split())


SCHEMA = experiment_schema()
CHECK = jsonschema.Draft202012Validator(SCHEMA)
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").glob("*.md")])


@pytest.mark.parametrize("key", FAMILIES)
def test_every_name_is_valid_alone_and_as_a_table_of_its_own_keys(key):
    for name in FAMILIES[key].choices:
        assert CHECK.is_valid({key: name})
        fields = fields_of(FAMILIES[key].member(name, key)).values()
        assert CHECK.is_valid({key: {"name": name}}) == (not any(field.required for field in fields)), name
        assert not CHECK.is_valid({key: {"name": name, "no such key": 1}}), name


def test_the_complete_configuration_of_a_run_and_experiment_files_in_the_pages_are_valid():
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
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
