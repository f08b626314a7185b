"""What a guarantee of privacy refuses and says of features that are standardised, cells that are filled, and levels."""

import numpy as np
import pytest

import mpifed
from mpifed.algorithms.bases.algorithm import Privacy
from mpifed.algorithms.gd import GD
from mpifed.core.errors import UserError
from mpifed.data.standardise import StandardisedDataset
from mpifed.report.summary import show

pytest.importorskip("dp_accounting")

EPM = {"name": "fedepm", "noise": "clipped", "epsilon": 0.5, "k0": 2}
FLAME = {"name": "flame-dp", "batch_size": 0, "epochs": 1, "noise_multiplier": 2.0}
AFTER = "so one sample changes others too: privacy is guaranteed for the data after that, not before"
SHARED = "over the training samples of all clients"


class Claimed(GD):
    """Gradient descent that claims a guarantee; a method that has one may take proximal steps."""

    supports = mpifed.extend.Supports.PRIVACY

    def privacy(self):
        return Privacy(True, "each upload is ε-private with ε = 1")


@pytest.fixture
def run(tmp_path):
    """Run on a table of 60 rows in which cells may be missing; ``options`` are of [data]."""
    rng = np.random.default_rng(3)
    lines = [
        f"{'' if k % 9 == 4 else a:.8},{'xyz'[k % 3]},{k % 2}" for k, a in enumerate(map(str, rng.standard_normal(60)))
    ]
    (tmp_path / "whole.csv").write_text("\n".join(["a,b,y", *(f"{k * k % 7},{k % 5},{k % 2}" for k in range(60))]))
    (tmp_path / "holes.csv").write_text("\n".join(["a,b,y", *lines]))

    def run(algorithm, file="whole.csv", rounds=1, problem="logistic", **options):
        data = {"name": "file", "path": str(tmp_path / file), "clients": 5, "header": True} | options
        table = {"rounds": rounds, "data": data, "problem": problem, "selection": "all", "algorithm": algorithm}
        return mpifed.run(table, path=tmp_path / "out.h5", force=True, progress=None)

    return run


def notes(result):
    """The notes but for those on what cells and labels say, which tests/contract/test_inferred.py is about."""
    inferred = ("which columns hold texts", "the classes of the labels")
    return "\n".join(note for note in str(result.attrs["notes"]).splitlines() if not note.startswith(inferred))


@pytest.mark.parametrize(
    ("algorithm", "key", "value", "why", "right"),
    [
        (EPM, "standardise", "own", "one sample moves the mean and deviation of its client", ("pooled", None)),
        (EPM, "standardise", "federated", "every client sends exact sums of its features", ("pooled", None)),
        (FLAME, "standardise", "federated", "every client sends exact sums of its", ("own", "pooled", None)),
        (EPM, "missing", "client-mean", "one sample moves the means of its client", ("mean", "drop")),
    ],
)
def test_what_the_noise_does_not_hide_is_refused_and_what_is_advised_runs(run, algorithm, key, value, why, right):
    file = "holes.csv" if key == "missing" else "whole.csv"
    with pytest.raises(UserError) as error:
        run(algorithm, file, **{key: value})
    assert str(error.value).startswith(f'data.{key} = "{value}" is wrong: {why}')
    for advised in right:
        assert (f'"{advised}"' if advised else "or absent") in str(error.value)
        assert run(algorithm, file, **({key: advised} if advised else {})).cr == 1
    seeded = algorithm | {"noise_seed": 1}
    assert run(seeded, file, **{key: value}).cr == 1  # which guarantees nothing


@pytest.mark.parametrize("algorithm", [EPM, FLAME])
def test_samples_that_those_of_other_clients_change_are_named(run, algorithm):
    assert AFTER not in notes(run(algorithm))
    assert f"features have mean 0 and deviation 1 {SHARED}, {AFTER}" in notes(run(algorithm, standardise="pooled"))
    told = notes(run(algorithm, "holes.csv", missing="mean"))
    assert f"missing cells are filled with means {SHARED}, {AFTER}" in told
    assert f"the levels of 'b' are those that occur in the samples of all clients, {AFTER}" in told
    assert AFTER not in notes(run({"name": "fedavg"}, "holes.csv", missing="mean", standardise="pooled"))


def test_means_of_the_own_client_change_no_other_which_whole_clients_need_alone(run, tmp_path):
    """But where a client knows nothing of a column, which is said."""
    assert AFTER not in notes(run(FLAME, standardise="own"))
    told = notes(run(FLAME, "holes.csv", missing="client-mean"))
    assert f"missing cells in a column of which a client knows nothing are filled with means {SHARED}, {AFTER}" in told

    def rows(factor):
        X = np.arange(40.0).reshape(10, 4) ** 1.5
        X[:2] *= factor
        data = mpifed.arrays(X, np.arange(10) % 2, np.full(5, 2)).load(0, "float64")
        return StandardisedDataset(data, "own", False).rows(0, 5)[0]

    one, other = rows(1.0), rows(-7.0)
    assert one[:2].tobytes() != other[:2].tobytes()
    assert one[2:].tobytes() == other[2:].tobytes()


def test_classes_whose_names_are_those_of_all_samples_are_named(run, tmp_path):
    (tmp_path / "words.csv").write_text("\n".join(["a,y", *(f"{k % 7},{'no' if k % 2 else 'yes'}" for k in range(60))]))
    told = str(run(EPM, "words.csv").attrs["notes"])
    assert f"the classes of the labels are those that occur in the samples of all clients, {AFTER}" in told


def test_the_fit_and_numbers_of_clients_of_a_private_run_say_that_they_are_of_the_true_data(tmp_path):
    table = {
        "rounds": 2,
        "data": {"name": "gaussian", "clients": 6, "test": 0.3, "features": 3},
        "problem": "logistic",
        "selection": "all",
        "evaluate": {"clients": True, "unseen": 2},
    }
    said = "may be published: f, ‖∇f‖², accuracy, numbers of each client, /unseen and snr are of the true data"
    for algorithm in (EPM, FLAME):
        result = mpifed.run(table, algorithm=algorithm, path=tmp_path / "out.h5", force=True, progress=None)
        assert said in notes(result)
        assert said in " ".join(show(result).split())
    true = "the estimates alone are a model that may be published: f, standard errors and all else here are computed"
    claimed = mpifed.run(table, algorithm=Claimed(), progress=None)  # with their noise, those above end beyond f(0)
    assert any(note.startswith(true) for note in claimed.fit().notes)
    plain = mpifed.run(table | {"algorithm": "fedavg"}, progress=None)
    assert not any(note.startswith(true) for note in plain.fit().notes)
    penalised = mpifed.run(table | {"objective": {"l1": 0.01}, "evaluate": {}}, algorithm=Claimed(), progress=None)
    assert "‖∇f‖², accuracy and snr are of the true data" in notes(penalised)
    assert penalised.fit().notes[0].startswith(true)
