"""The round loop ends a run that diverges, or whose numbers are not finite."""

import re

import h5py
import pytest

from mpifed.results.result import load
from tests.experiment.conftest import run, status

LOST = r"the (reply|loss or gradient) of client \d+ is not finite in round \d, method \w+: .*"


@pytest.mark.parametrize(
    ("a", "words", "sentence"),
    [("1e200", ["stop.diverged=0"], LOST), ("3.0", [], r"f diverges: \S+ in round \d after \S+ at the start, so")],
    ids=["not finite", "diverges"],
)
def test_divergence_ends_the_run_unless_told_to_go_on_and_numbers_that_are_not_finite_do(a, words, sentence, tmp_path):
    path, step = tmp_path / "out.h5", f"algorithm.step={{name='constant',a={a}}}"
    study = ["run", "algorithm=fedavg", step, "data.clients=13", "rounds=9", "-q", "-o", path, *words]
    done = run(*study, code=1)
    assert re.search(rf"^mpifed: {sentence} look at algorithm\.step", done.err, re.M), done.err
    assert "Warning" not in done.err
    assert status(path)[0] == "failed"
    if not words:
        run(*study, "stop.diverged=0", "--force")


def test_models_are_stored_after_every_so_many_rounds_and_the_last(tmp_path):
    study = ["algorithm=fedavg", "data.clients=13", "stop.gradient=0.0", "-q"]
    run("run", *study, "rounds=7", "record.models=3", "-o", tmp_path / "models.h5")
    models = load(tmp_path / "models.h5").models
    assert models["round"].tolist() == [0, 3, 6, 7]
    for round, x in zip(models["round"], models["x"], strict=True):
        run("run", *study, f"rounds={round}", "--force", "-o", tmp_path / "short.h5")
        assert load(tmp_path / "short.h5").x.tobytes() == x.tobytes()
    with h5py.File(tmp_path / "short.h5") as file:
        assert "models" not in file
