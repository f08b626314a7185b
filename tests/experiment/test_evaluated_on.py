"""Which samples accuracies and metrics are over: test samples of clients that have some, or all training samples."""

import re

import h5py
import numpy as np
import pytest

import mpifed
from tests.helpers.commands import mpifed as command

RNG = np.random.default_rng(0)
SIZES = [1] * 10 + [10] * 10  # with a fifth for testing: half of the clients have no test sample
X = RNG.standard_normal((sum(SIZES), 300))
COIN = RNG.integers(0, 2, len(X))
NOTE = "10 of 20 clients have no test samples, and are left out of accuracy, accuracy_pooled"
STUDY = {"problem": "logistic", "algorithm": "gd", "rounds": 20}


def coins(test=0.2, **settings):
    """A run on labels that no model can predict, with 300 features, by which all training samples can be told apart."""
    return mpifed.run(STUDY | settings, data=mpifed.arrays(X, COIN, SIZES, test=test), progress=False)


def test_labels_of_coin_tosses_are_predicted_by_chance():
    result = coins(evaluate={"clients": ["accuracy", "auc"]})
    last = result.rounds["accuracy"][-1]
    assert abs(last - 0.5) <= 0.15
    assert last == result.rounds["accuracy_pooled"][-1]  # two test samples of each client that has some
    assert NOTE in result.attrs["notes"].splitlines()
    assert (result.attrs["evaluated_on"], result.attrs["missing"]) == ("test", 10)
    assert result.about["accuracy"][1] == (
        "Fraction of a client's test samples that the server's model classifies correctly, mean over clients. Left "
        "out: 10 clients without any."
    )
    own = result.by_client["accuracy"]
    assert np.isnan(own[:, :10]).all()
    assert np.allclose(own[:, 10:].mean(axis=1), result.rounds["accuracy"])
    assert np.isnan(result.by_client["auc"][:, :10]).all()
    spreads = result.over_clients()
    assert (spreads["missing"] == 10).all()
    assert spreads["worst_tenth"][-1] == own[-1, 10:].min()


def test_a_file_whose_partition_leaves_clients_without_test_samples_is_evaluated_at_chance(tmp_path):
    rng = np.random.default_rng(1)
    np.savez(tmp_path / "noise.npz", X=rng.standard_normal((600, 100)), y=rng.integers(0, 10, 600))
    data = {"name": "file", "path": str(tmp_path / "noise.npz"), "clients": 60, "test": 0.2}
    data |= {"partition": {"name": "dirichlet", "alpha": 0.1}}
    result = mpifed.run({"data": data, "problem": "softmax", "algorithm": "gd", "rounds": 50}, progress=False)
    missing = result.attrs["missing"]
    assert f"{missing} of 60 clients have no test samples" in result.attrs["notes"]
    assert 0 < missing < 60
    assert abs(result.rounds["accuracy"][-1] - 0.1) < 0.06
    assert abs(result.rounds["accuracy_pooled"][-1] - 0.1) < 0.06


def test_numbers_of_training_samples_are_called_so_everywhere(tmp_path):
    path = tmp_path / "coins.h5"
    result = coins(test=0.0, stop={"accuracy": 0.8}, evaluate={"clients": True})
    result.save(path)
    assert re.fullmatch(r"accuracy: [01]\S* of training samples >= 0.8", result.stop_reason)
    assert "no test samples" not in result.attrs["notes"]
    assert result.about["accuracy"][1].startswith("Fraction of a client's training samples that")
    with h5py.File(path) as file:
        assert dict(file["rounds/accuracy"].attrs.items())["samples"] == "training"
        assert file["rounds/accuracy"].attrs["missing"] == 0
        assert file["clients/accuracy"].attrs["samples"] == "training"
        assert "samples" not in file["rounds/objective"].attrs
    told = " ".join(result.summary().split())
    assert " training accuracy 0" in told
    assert " training accuracy_pooled 0" in told
    assert " clients' training accuracy median" in told
    assert "training accuracy" in result._repr_html_()
    assert "  training accuracy" in mpifed.compare([result], ["objective", "accuracy"])
    assert "training accuracy" in command("compare", path, "--clients").out


def test_a_picture_names_training_accuracy_on_its_axis():
    pytest.importorskip("matplotlib")
    trained, tested = coins(test=0.0), coins()
    assert trained.plot("accuracy").axes[0].get_ylabel() == "training accuracy"
    assert tested.plot("accuracy").axes[0].get_ylabel() == "accuracy"
    assert mpifed.plot([tested, trained], "accuracy").axes[0].get_ylabel() == "test or training accuracy"


def test_a_table_of_runs_on_other_samples_says_which_and_who_is_left_out():
    trained, tested = coins(test=0.0), coins()
    text = mpifed.compare([trained, tested], ["accuracy"])
    head, *rows = [line.split("  ") for line in text.splitlines()[:4] if line.strip()]
    words = [[cell.strip() for cell in row if cell.strip()] for row in (head, *rows)]
    assert words[0][-3:] == ["samples", "missing", "test or training accuracy"]
    assert sorted(row[-3:-1] for row in words[-2:]) == [["test", "10"], ["training", "0"]]
    assert text.splitlines()[-1] == "missing: clients without test samples, left out of accuracy"
    assert "samples" not in mpifed.compare([tested, tested], ["objective"])
    assert "evaluated_on" in mpifed.compare([trained], ["accuracy"], format="csv")  # whose columns have plain keys
    assert "evaluated_on" not in mpifed.compare([tested], ["accuracy"], format="csv")


def test_a_frame_has_them_beside_the_numbers():
    pytest.importorskip("pandas")
    table = mpifed.frame([coins(test=0.0), coins()])
    assert table[["evaluated_on", "missing"]].to_numpy().tolist() == [["training", 0], ["test", 10]]
    assert "missing" not in mpifed.frame(mpifed.run(rounds=1, progress=False)).columns


def test_tuning_says_what_it_is_by(tmp_path):
    np.savez(tmp_path / "coins.npz", X=X, y=COIN, sizes=SIZES)
    words = f"data=file data.path={tmp_path}/coins.npz problem=logistic rounds=2 --runs 2 --seeds 1".split()
    words += ["--method", "fedavg k0=1,2", "--measure", "accuracy", "-q"]
    told = "by training samples, for no client has others"
    assert told in command("tune", *words, "-o", tmp_path / "trained").out
    rounds = [*words[:-3], "--measure", "rounds", "stop.accuracy=0.1", "-q"]  # until this accuracy of training samples
    assert told in command("tune", *rounds, "-o", tmp_path / "rounds").out
    assert command("run", *words[:4], "stop.accuracy=0.1", "checkpoint.keep=true", "-o", tmp_path / "out.h5").code == 0
    again = command("resume", tmp_path / "out.h5", "rounds=30")
    assert re.search(r"would end at once \(accuracy: \S+ of training samples >= 0.1\)", again.err)
    chosen = command("tune", *words, "data.validation=0.2", "-o", tmp_path / "chosen").out
    assert told not in chosen
    assert "by validation samples\n\nwithout the clients that have no validation samples, at most 10" in chosen
    tested = command("tune", *words, "data.test=0.2", "-o", tmp_path / "tested")
    assert tested.code == 2
    assert "would choose by test samples" in tested.err


@pytest.mark.parametrize("method", ["ditto", "pfedme", "apfl"])
def test_personal_models_are_evaluated_on_the_same_samples(method):
    result = coins(algorithm={"name": method, "step": 0.5} if method != "pfedme" else method)
    assert abs(result.rounds["personal_accuracy"][-1] - 0.5) <= 0.2
    assert result.about["personal_accuracy"][1].endswith("Left out: 10 clients without any.")
    assert "left out of accuracy, accuracy_pooled, personal_accuracy" in result.attrs["notes"]


def test_unseen_clients_without_test_samples_are_left_out_too():
    result = coins(evaluate={"unseen": [8, 9, 10, 11, 12]})
    for name in ("accuracy", "accuracy_after"):
        assert np.isnan(result.unseen[name]).all(axis=0).tolist() == [True, True, False, False, False]
    assert (result.over_clients("accuracy_after", unseen=True)["missing"] == 2).all()
    notes = result.attrs["notes"].splitlines()
    assert "2 of 5 unseen clients have no test samples, and are left out of their numbers" in notes
    assert "8 of 15 clients have no test samples, and are left out of accuracy, accuracy_pooled" in notes
    alone = coins(evaluate={"unseen": [8, 9]})
    assert (alone.attrs["evaluated_on"], alone.attrs["unseen_evaluated_on"]) == ("test", "training")
    assert "unseen clients' training accuracy" in " ".join(alone.summary().split())
    assert not np.isnan(alone.unseen["accuracy_after"]).any()


def test_weighted_samples_and_metrics_follow_the_same_rule():
    rng = np.random.default_rng(2)
    y = rng.poisson(2.0, len(X)).astype(float)
    data = mpifed.arrays(X[:, :2], y, SIZES, test=0.2, weight=rng.uniform(0.5, 2.0, len(X)))
    result = mpifed.run(data=data, problem="poisson", algorithm="newton", rounds=3, progress=False)
    whole = mpifed.run(result.config, data=data, evaluate={"clients": True}, progress=False)
    own = whole.by_client["deviance"]
    assert np.isnan(own[:, :10]).all()
    assert np.allclose(own[:, 10:].mean(axis=1), result.rounds["deviance"])
    assert "10 of 20 clients have no test samples, and are left out of deviance" in result.attrs["notes"]
