"""What people write at first works, or the sentence says what does; what has no effect is said."""

import ast
import functools
import re
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

import mpifed
from mpifed.cli.main import main
from mpifed.core.errors import RunError, UserError
from mpifed.experiment.config import override
from tests.contract import advised_files
from tests.contract.advised import ADVISED
from tests.contract.conftest import some

SMALL = ["data.clients=6", "data.features=5"]
SMALL_STUDY = {"data": {"clients": 6, "features": 5}, "rounds": 1}
SENTENCES = {
    "algorithm=gd algorithm.lr=0.1": r"what to tune first is algorithm.gamma, such as algorithm.gamma = 0.1$",
    "algorithm=pfedme algorithm.step=0.1": r"what to tune first is algorithm.lr, such as algorithm.lr = 0.1$",
    "stop.seconds=50ms": r"it must be a number, not a text; in seconds that is 0.05$",
    "data=digits problem=softmax data.partition.alpha=0.1": r'; with data.partition.name = "dirichlet" there is alpha$',
    "data=matrix.npz": r"a matrix of scipy.sparse.save_npz and no labels: write numpy.savez\(file, X_data=A.data",
}
WORKS = {
    "algorithm=fedavg algorithm.step=0.1": "",
    "rounds=2e0": "",
    "data=fed.npz": "",
    "data=table.csv data.clients=6": r"feature 0 of table.csv \(counted from 0\) numbers the rows: take the column out",
    "data=digits problem=softmax data.clients=5 data.partition=dirichlet data.partition.alpha=0.1": "",
    "compress.up=topk compress.up.k=50": r"compress.up.k = 50 is above the 5 numbers of a message: all are sent",
    "algorithm=ef21 algorithm.compressor=topk algorithm.compressor.k=9": r"algorithm.compressor.k = 9 is above the 5",
    "algorithm=fedavg algorithm.batch_size=1000": r"batch_size = 1000 is above the \d+ samples of the largest client",
}


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    np.savez("fed.npz", X=X, y=y, client=np.arange(60) % 6)
    sp.save_npz("matrix.npz", sp.csr_array(X))
    np.savetxt("table.csv", np.c_[np.arange(60), X[:, :2], y], delimiter=",", header="id,a,b,y", comments="")


def command(words):
    return ["run", "rounds=2", "-o", "out.h5", *([] if "data=" in words else SMALL), *words.split()]


@pytest.mark.parametrize("words", SENTENCES)
def test_what_cannot_work_is_told_with_what_does(words, capsys):
    assert main(command(words)) == 2
    said = capsys.readouterr().err.strip().removeprefix("mpifed: ")
    assert re.search(SENTENCES[words], said), said


@pytest.mark.parametrize("words", WORKS)
def test_what_people_write_at_first_works_and_says_what_has_no_effect(words, capsys):
    assert main([*command(words), "-q"]) == 0
    result = mpifed.load("out.h5")
    assert result.status == "finished"
    assert re.search(WORKS[words], result.attrs["notes"]), result.attrs["notes"]


def test_a_data_file_may_be_named_in_an_experiment_file_and_is_beside_it(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "fed.npz").rename(tmp_path / "sub" / "own.npz")
    (tmp_path / "sub" / "study.toml").write_text('rounds = 2\ndata = "own.npz"\n')
    result = mpifed.run("sub/study.toml")
    assert len(result.clients["samples"]) == 6
    np.testing.assert_array_equal(result.x, mpifed.run(rounds=2, data=str(tmp_path / "sub" / "own.npz")).x)


def test_a_run_that_is_over_goes_on_with_the_rounds_that_its_sentence_names():
    mpifed.run(SMALL_STUDY, path="out.h5", rounds=2, stop={"gradient": 0.0})
    with pytest.raises(UserError) as error:
        mpifed.resume("out.h5")
    words = re.search(r"to go on, such as (rounds=\d+)$", str(error.value))[1]
    assert mpifed.resume("out.h5", override({}, [words])).cr == 4


def test_clients_are_compared_where_what_the_sentence_names_asks_for_their_numbers(capsys):
    classes = {"data": {"name": "gaussian", "clients": 4, "samples": 6, "features": 3}, "problem": "logistic"}
    mpifed.run(classes, path="out.h5", rounds=1)
    assert main(["compare", "out.h5", "--clients"]) == 2
    sentence = r"no result has numbers of clients: (evaluate\.\w+) or .* asks for some"
    key = re.search(sentence, capsys.readouterr().err)[1]
    mpifed.run(classes | {key: True}, path="out.h5", rounds=1, force=True)
    assert main(["compare", "out.h5", "--clients"]) == 0
    assert "accuracy" in capsys.readouterr().out


def test_a_stream_takes_any_word_and_never_one_of_the_program():
    own = mpifed.extend.stream(1, "my own word", 2).random(4)
    np.testing.assert_array_equal(own, mpifed.extend.stream(1, "my own word", 2).random(4))
    others = [mpifed.extend.stream(1, word, 2).random(4) for word in ("data", "clients", "my other word")]
    assert all((own != other).any() for other in others)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with the files of the studies in ADVISED."""
    place = tmp_path_factory.mktemp("advised")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        advised_files.write()
    said.cache_clear()
    return place


def typed(words, then=""):
    """The words of a study with what is typed behind them: a key has its last value, and a minus leaves words out."""
    found = []
    for word in f"{words} {then}".split():
        out = word[1:] if word.startswith("-") else word.partition("=")[0] + "="
        found = [one for one in found if not one.startswith(out)]
        found += [] if word.startswith("-") else [word]
    return tuple(found)


FEW = ("rounds=4", "stop.gradient=0.0", "stop.diverged=0")


@functools.cache
def said(words):
    """What a run of a study says, and the model and by how much f falls of one that ends well."""
    try:
        result = mpifed.run(override({}, (*FEW, *words)), progress=False)
    except (UserError, RunError) as error:
        return str(error), None, 0.0
    assert result.status == "finished"
    f = result.rounds["objective"]
    return result.attrs["notes"], result.x, f[0] - f[1:].min()


@pytest.mark.parametrize("advice", some(zip(ADVISED)), ids=lambda advice: f"{advice.study} · {advice.then}")
def test_who_does_what_a_sentence_says_sees_the_right_number_or_the_next_sentence(advice, place, monkeypatch):
    monkeypatch.chdir(place)
    first = said(typed(advice.study))[0]
    found = re.search(advice.says, first)
    assert found, first
    settings = " ".join(group.replace(" = ", "=").replace(", ", ",") for group in found.groups() if group)
    told, x, fall = said(typed(advice.study, advice.then or settings))
    if advice.next:
        assert re.search(advice.next, told), told
    else:
        assert x is not None, told
        assert np.isfinite(x).all()
        assert fall > 0
    if advice.like:
        np.testing.assert_allclose(x, said(typed(advice.like))[1], rtol=1e-12)


# the settings that a sentence may name, and the words by which it advises one
NAMED = (
    r"\b(data|problem|algorithm|selection|evaluate|stop|record|system|asynchronous|attack|robust|compress|masks|privacy|"
    r"objective|graph|checkpoint)(\.[a-z_]|\.?[{\0]| ?= ?)|"
    r"\b(personal|kernels|dtype|start|rounds|bias|option|order|q) ?= ?|\[[a-z]+\]"
)
ADVISING = (
    r"\b(write|set|leave|leaves|give|lower|raise|use|choose|name it|named in|fill in|reads|makes a|begin|so it must be|"
    r"must be \"|asks for|has one|takes? (?!(part|no|fewer|the proximal)\b))|such as|is missing"
)
# beginnings of places and sentences that other tests try, or that advise nothing of a study
ELSEWHERE = {
    "checking/": "what a class must be: tests/contract/test_check.py",
    "cli/": "words of commands: tests/cli",
    "sweeps/": "words of commands: tests/sweeps",
    "report/clients.py": "of a file: a test above",
    "results/over_clients.py": "of a file: as that of report/clients.py",
    "report/": "options of commands: tests/report",
    "results/": "descriptions of columns",
    "theory/": "conditions of theorems",
    "networks/": "they need PyTorch: tests/networks",
    "engine/devices/": "they need a GPU: tests/engine/devices",
    "data/sources/torch_dataset.py": "data sets of PyTorch: tests/data/sources/test_torch_dataset.py",
    "data/sources/frame.py": "frames of a program, as columns of files: tests/data/sources",
    "data/formats/parquet.py": "as those of CSV: tests/data/formats",
    "data/tables/table.py: replace dates and times": "of frames and Parquet files, as those of CSV: tests/data/tables",
    "data/formats/csv.py": "how cells are written: tests/data/formats/test_csv.py",
    "data/formats/lines.py": "how texts are encoded: tests/data/formats/test_csv.py",
    "data/sources/file.py: data.encoding": "tests/data/formats/test_csv.py",
    "data/sources/file.py: data.comment": "tests/data/formats/test_csv.py",
    "data/sources/tabular.py: {}, is 0 in every row": "tests/data/sources/test_sample_columns.py",
    "algorithms/fedns.py": "tests/statistics/test_identifiability.py",
    "experiment/rehearsed_work.py": "tests/experiment/test_rehearsed_work.py",
    "data/data_guards.py": "a class of one's own: tests/contract",
    "federation/peers/graph_federation.py": "a class of one's own: tests/contract",
    "core/objects.py": "of Python alone: tests/api",
    "experiment/resume.py": "of a run that goes on: a test above, and tests/experiment/test_resume.py",
    "experiment/config.py: {} is not an override": "words of commands: tests/cli",
    "experiment/config.py: data.client_weights": "a setting of files of earlier versions",
    "statistics/": "of a model at hand: tests/statistics",
    "features/conflicts.py: problem.augment": "they need PyTorch: tests/networks",
    "features/conflicts.py: problem.autocast": "they need PyTorch: tests/networks",
    "features/conflicts.py: objective.weights = {} is wrong: {} says": "a class of one's own: tests/features",
    "features/privacy/mechanisms.py: the server, which": "of the ten lines of mpifed certify, which advise nothing",
    "features/message_conflicts.py: masks.sums must be": "of a class of one's own whose noise lies on no grid",
}


def written():
    """The texts of the package, of each its place and its parts between what is filled in; without docstrings."""
    for path in sorted(Path(mpifed.__file__).parent.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        nodes = list(ast.walk(tree))
        left_out = [node.value for node in nodes if isinstance(node, ast.Expr)]
        named = [node for node in nodes if isinstance(node, ast.keyword) and node.arg in ("description", "help")]
        left_out += [node.value for node in named]
        left_out += [part for node in nodes if isinstance(node, ast.JoinedStr) for part in node.values]
        inside = {id(part) for node in left_out for part in ast.walk(node)}
        for node in nodes:
            if id(node) in inside or not isinstance(node, ast.JoinedStr | ast.Constant):
                continue
            parts = node.values if isinstance(node, ast.JoinedStr) else [node]
            texts = [part.value if isinstance(part, ast.Constant) else "{}" for part in parts]
            if all(isinstance(text, str) for text in texts):
                place = f"{path.relative_to(Path(mpifed.__file__).parent)}:{node.lineno}"
                yield place, re.split(r"\{[^{}]*\}", "".join(texts))


def test_every_sentence_that_advises_a_setting_is_done_by_a_test(place, monkeypatch):
    monkeypatch.chdir(place)
    heard = [said(typed(advice.study, then))[0] for advice in ADVISED for then in ("", advice.then)]
    heard += [said(tuple(command(words)[4:]))[0] for words in SENTENCES | WORKS]
    missing = []
    for where, pieces in written():
        text = "{}".join(pieces)
        if not (" " in text and re.search(NAMED, text) and re.search(ADVISING, text)):
            continue
        pattern = re.compile(".*?".join(map(re.escape, pieces)), re.S)
        if not (any(map(pattern.search, heard)) or f"{where.partition(':')[0]}: {text}".startswith(tuple(ELSEWHERE))):
            missing.append(f"{where}: {text}")
    assert not missing, "\n".join(missing)
