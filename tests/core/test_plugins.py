"""Classes from outside mpifed: by file, by module, by entry point; what a value is in a sentence about them."""

import re
import sys

import numpy as np
import pytest

from mpifed import load
from mpifed.cli import describe
from mpifed.core import plugins
from mpifed.core.arrays import is_real_array
from mpifed.core.errors import UserError
from mpifed.core.guards import describe_value
from mpifed.experiment import config
from tests.helpers.commands import ROOT, mpifed

GUIDE = (ROOT / "docs" / "extending.md").read_text("utf-8")
REFERENCE = (ROOT / "docs" / "extending-reference.md").read_text("utf-8")
FILES = dict(re.findall(r"<!-- file: (\S+) -->\n```python\n(.*?)```", GUIDE, re.S))
METHODS, STUDY_PY = FILES["my_methods.py"], FILES["my_study.py"]
STUDY_TOML = re.findall(r"```toml\n(.*?)```", GUIDE, re.S)[0]
SMALL = ("data.clients=6", "data.features=5", "rounds=5", "-q")


def forget(folder):
    """What a new process would not know of a folder."""
    plugins.read_entry_points.cache_clear()
    for name in [name for name in sys.modules if name.startswith((str(folder), "my_package"))]:
        del sys.modules[name]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with the guide's my_methods.py in it, the current one."""
    (tmp_path / "my_methods.py").write_text(METHODS, "utf-8")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    forget(tmp_path)


@pytest.fixture
def package(folder, monkeypatch):
    """An installed package with entry points, for one family a good and a bad one."""
    info = folder / "site" / "my_package-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-package\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[mpifed.algorithms]\ndescent = my_package.methods:GradientDescent\n"
        "bad = my_package.methods:Client\nfedavg = no:Thing\n"
    )
    (folder / "site" / "my_package").mkdir()
    (folder / "site" / "my_package" / "methods.py").write_text(METHODS, "utf-8")
    monkeypatch.syspath_prepend(folder / "site")
    plugins.read_entry_points.cache_clear()
    return folder / "site"


def run(folder, *words, to="out.h5"):
    done = mpifed("run", *words, "-o", to, cwd=folder)
    assert done.code == 0, done.err
    return load(folder / to)


# the three ways to name a class


def test_the_commands_of_the_guide_work(folder):
    (commands,) = (block for block in re.findall(r"```bash\n(.*?)```", GUIDE, re.S) if "my_methods.py" in block)
    first, second = (re.sub(r"^mpirun -n 3 ", "", line).split()[3:] for line in commands.splitlines())
    assert mpifed(*first, *SMALL, cwd=folder).code == 0
    assert [file.name for file in folder.glob("*.h5")] == ["mpifed-GradientDescent-linreg-noniid-1.h5"]
    told = mpifed(*second, cwd=folder).out
    assert told.startswith(f"my_methods.py:GradientDescent  (algorithms: {folder}/my_methods.py)\n\nx⁺ = x − γ")
    assert re.search(r"gamma +0\.01 +step size γ +\[> 0\]", told)


def test_a_run_is_resumed_from_the_same_folder(folder):
    words = ("algorithm=my_methods.py:GradientDescent", *SMALL)
    whole = run(folder, *words)
    run(folder, *words, "rounds=2", to="cut.h5")
    forget(folder)
    done = mpifed("resume", "cut.h5", "rounds=5", "-q", cwd=folder)
    assert done.code == 0, done.err
    assert load(folder / "cut.h5").x.tobytes() == whole.x.tobytes()
    (folder / "my_methods.py").unlink()
    done = mpifed("resume", "cut.h5", "rounds=6", "-q", cwd=folder)
    wrong = 'algorithm = "my_methods.py:GradientDescent" is wrong: there is no file my_methods.py'
    assert (done.code, done.err) == (2, f"mpifed: cut.h5: {wrong}\n")


@pytest.mark.parametrize(("name", "gamma"), [("my_package.methods:GradientDescent", 0.2), ("descent", 0.1)])
def test_a_class_of_a_package_is_named_by_its_module_or_by_an_entry_point(package, name, gamma):
    found = run(package.parent, f"algorithm={name}", f"algorithm.gamma={gamma}", *SMALL)
    assert found.config["algorithm"] == {"name": name, "certify": False, "gamma": gamma}


def test_entry_points_are_listed_and_described(package):
    listed = describe.list_names("algorithms")
    assert re.search(r"^  descent +x⁺ = x − γ .*\(my_package.methods:GradientDescent\)$", listed, re.M)
    bad = r'^  bad +\(algorithms = "bad" is wrong: Client of my_package.methods is not derived '
    assert re.search(bad, listed, re.M)
    assert len(re.findall("^  fedavg ", listed, re.M)) == 1  # a name of mpifed stays what it is
    assert f"descent  (algorithms: {package}/my_package/methods.py)" in describe.describe_component("descent")
    with pytest.raises(UserError, match=r"^unknown algorithm 'descnt'; did you mean 'descent'\?$"):
        config.experiment({"algorithm": "descnt"})


def test_packages_are_searched_only_for_names_that_mpifed_does_not_have(folder):
    plugins.read_entry_points.cache_clear()
    config.experiment({"algorithm": "fedavg", "data": "qot"})
    config.experiment({"algorithm": "my_methods.py:GradientDescent"})
    assert plugins.read_entry_points.cache_info().misses == 0


# the guide


def test_the_study_of_the_guide_runs_from_another_folder_with_the_same_bits(folder):
    (folder / "my_study.py").write_text(STUDY_PY, "utf-8")
    (folder / "study.toml").write_text(STUDY_TOML, "utf-8")
    elsewhere = folder / "elsewhere"
    elsewhere.mkdir()
    whole, spread = run(folder, "study.toml", "-q"), run(elsewhere, "../study.toml", "-q")
    assert whole.x.tobytes() == spread.x.tobytes()
    assert whole.rounds["grad_norm_sq"][-1] < 1e-9
    assert abs(whole.x - 1).max() < 0.3
    assert whole.config["problem"] == {"name": "my_study.py:Huber", "delta": 2.0}
    assert spread.config["problem"]["name"] == "../my_study.py:Huber"
    told = mpifed("data", "info", "my_study.py:Outliers", cwd=folder).out
    assert re.search(r"^features n +20$", told, re.M)


def abstract(cls):
    return [key for key in dir(cls) if getattr(getattr(cls, key), "__isabstractmethod__", False)]


def test_the_guide_names_what_each_kind_must_define_and_its_group_and_classes_of_mpifed_define_it():
    for family in describe.KINDS.values():
        row = re.search(rf"\| `{plugins.public_module(family)}.{family.__name__}`[^|]* \| (.*) \|", REFERENCE).group(1)
        # an attack is one of three methods, each of which may stay as it is
        assert abstract(family) or family.kind == "attacks"
        assert all(f"`{key}`" in row for key in abstract(family))
        assert f"`mpifed.{family.kind}`" in REFERENCE
        assert not [name for name in family.choices if abstract(family.member(name, "name"))]


def test_parts_of_an_algorithm_come_from_outside_too(folder):
    (folder / "mine.py").write_text(
        "from mpifed.algorithms.parts.step_sizes import Step\nclass Half(Step):\n    def gamma(self, k, k0, d):\n"
        "        return 0.5 ** k\n"
    )
    told = config.experiment({"algorithm": {"name": "fedavg", "step": "mine.py:Half"}})
    assert told.algorithm.step.gamma(2, 1, None) == 0.25
    assert 'name = "mine.py:Half"' in told.toml()


# mistakes

BROKEN = """
from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.problems.problem import Problem
class Half(Algorithm):
    def init_server(self, fed): ...
class Loss(Problem): ...
class Whole(Half):
    def init_client(self, f): ...
    def round(self, fed, server): ...
"""
WRONG = {
    "algorithm=nowhere.py:X": "there is no file nowhere.py",
    "algorithm=my_methods.py:GradientDescend": "my_methods.py has no class GradientDescend; it defines GradientDescent",
    "algorithm=my_methods.py:join": "my_methods.py has no class join; it defines Client, Server, GradientDescent",
    "algorithm=my_methods.py:Client": "Client of my_methods.py is not derived from mpifed.extend.Algorithm",
    "algorithm=broken.py:Algorithm": "Algorithm of broken.py is not derived from mpifed.extend.Algorithm",
    "problem=broken.py:Half": "Half of broken.py is not derived from mpifed.extend.Problem",
    "data=json:JSONDecoder": "JSONDecoder of json is not derived from mpifed.extend.Data",
    "algorithm=broken.py:Half": "Half of broken.py does not define init_client, round",
    "problem=broken.py:Loss": "Loss of broken.py does not define value_grad",
    "algorithm=nowhere.methods:X": "nowhere.methods cannot be imported: ModuleNotFoundError: No module named 'nowhere'",
    "algorithm=fails.py:X": "fails.py cannot be imported: ZeroDivisionError: division by zero (fails.py, line 3)",
    "algorithm=leaves.py:X": "leaves.py cannot be imported: SystemExit: 3 (leaves.py, line 1)",
    "algorithm=text.py:X": "text.py cannot be imported: SyntaxError: invalid syntax (text.py, line 1)",
    "selection=os.system('true'):X": "write path.py:Class or package.module:Class",
    "selection=my_methods.py:": "write path.py:Class or package.module:Class",
    "selection=my_methods.py:Client.x": "write path.py:Class or package.module:Class",
    "algorithm=:X": "write path.py:Class or package.module:Class",
}


def refused(sentence, *assignments):
    with pytest.raises(UserError) as caught:
        config.experiment(config.override({}, assignments))
    assert str(caught.value) == sentence


def test_what_is_missing_is_told_in_one_sentence(folder):
    files = {"broken": BROKEN, "fails": "\n\n1 / 0\n", "leaves": "raise SystemExit(3)\n", "text": "no code\n"}
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    for assignment, sentence in [*WRONG.items()] * 2:  # a file that failed is tried again
        key, name = assignment.split("=")
        refused(f'{key} = "{name}" is wrong: {sentence}', assignment)
    name = "algorithm=my_methods.py:GradientDescent"
    refused("unknown key 'algorithm.gama'; did you mean 'gamma'?", name, "algorithm.gama=1")
    refused("algorithm.gamma = 0 is wrong: it must be a number > 0.0", name, "algorithm.gamma=0")
    underived = "it has no base class such as mpifed.extend.Algorithm"
    for name, sentence in {"json:JSONDecoder": underived, "nowhere.py:X": "there is no file nowhere.py"}.items():
        with pytest.raises(UserError, match=rf'^name = "{name}" is wrong: {sentence}$'):
            describe.describe_component(name)


def test_two_files_of_one_name_do_not_meet(folder):
    found = []
    for name in ("one", "two"):
        (folder / name).mkdir()
        (folder / name / "json.py").write_text(f"class Own:\n    where = '{name}'\n")
        found.append(plugins.load_class(f"{name}/json.py:Own"))
    assert [cls.where for cls in found] == ["one", "two"]
    assert "Own" not in vars(sys.modules["json"])
    assert plugins.load_class(f"{folder}/one/json.py:Own") is found[0]


ROWS = np.ones((2, 3))
REAL = [(ROWS, "an array of shape (2, 3)"), (ROWS > 0, "an array bool of shape (2, 3)")]
OTHERS = [
    (None, "None"),
    (True, "the number True"),
    (1j, "the number 1j"),
    (np.float64(2), "a single number"),
    ("three", "a str"),
    (ROWS.tolist(), "a list of 2"),
    ({"a": 1}, "a dict of 1"),
    ((row for row in ROWS), "a generator"),
    (OSError, "a type"),
    (OSError(), "an OSError"),
    (ROWS * 1j, "an array complex128 of shape (2, 3)"),
    (ROWS.astype(object), "an array object of shape (2, 3)"),
    (np.array(["a"]), "an array <U1 of shape (1,)"),
    (np.ma.masked_less(ROWS, 0), "a MaskedArray of shape (2, 3)"),
]


@pytest.mark.parametrize(("value", "words"), REAL + OTHERS, ids=[words for _, words in REAL + OTHERS])
def test_a_value_is_told_by_its_type_and_shape(value, words):
    assert describe_value(value) == words
    assert is_real_array(value) == any(value is real for real, _ in REAL)
