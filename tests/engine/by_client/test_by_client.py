"""evaluate.clients: the accuracy and the metric of each client, in every evaluation."""

import h5py
import numpy as np
import pytest
import xarray

import mpifed
from mpifed import UserError
from mpifed.data.dataset import Data
from mpifed.engine.by_client import ClientEvaluation
from mpifed.problems.softmax import Softmax
from mpifed.report.tables import format_number

M = 12
DATA = {"name": "synthetic", "clients": M, "features": 6, "classes": 3, "least": 8, "most": 30, "test": 0.0}
STUDY = {
    "data": DATA,
    "problem": "softmax",
    "algorithm": {"name": "fedavg", "step": 0.1},
    "rounds": 5,
    "evaluate": {"clients": True, "every": 2},
    "record": {"models": 1},
}
ROUNDS = [0, 2, 4, 5]


def run(*wishes, **changes):
    return mpifed.run(STUDY, *wishes, progress=False, **changes)


def shares(x):
    """The share of the samples of each client that a softmax model classifies correctly."""
    data = Data.build(DATA, "data").load(0, "float64")
    W, bias = x[:18].reshape(3, 6), x[18:]
    found = []
    for i in range(M):
        X, y = data.rows(i, i + 1)
        found.append(np.mean((X @ W.T + bias).argmax(1) == y))
    return found


def test_the_accuracy_of_each_client_is_that_of_the_model_of_the_round_on_its_samples():
    result = run()
    found = result.by_client
    assert found["round"].tolist() == ROUNDS
    assert np.allclose(found["accuracy"], [shares(result.models["x"][round]) for round in ROUNDS])
    assert np.allclose(found["accuracy"].mean(axis=1), result.rounds["accuracy"][ROUNDS])
    assert set(found) == {"round", "accuracy"}


def test_numbers_that_are_named_are_stored_also_at_personal_models():
    generated = DATA | {"classes": 2}
    flame = {"name": "flame", "lr": 0.1, "batch_size": 0}
    wanted = {"evaluate.clients": ["deviance", "auc", "accuracy"]}
    result = run(wanted, data=generated, problem="logistic", algorithm=flame)
    found = result.by_client
    assert set(found) == {
        "round",
        *wanted["evaluate.clients"],
        *(f"personal_{name}" for name in wanted["evaluate.clients"]),
    }
    assert np.allclose(found["personal_accuracy"].mean(axis=1), result.rounds["personal_accuracy"][ROUNDS])
    assert np.allclose(found["deviance"][0], 2 * np.log(2))  # probabilities of 1/2 at the start
    data = Data.build(generated, "data").load(0, "float64")
    mixed = [0 < data.rows(i, i + 1)[1].mean() < 1 for i in range(M)]
    assert (~np.isnan(found["auc"])).all(axis=0).tolist() == mixed
    assert (found["auc"][0, mixed] == 0.5).all()  # all scores are 0
    assert set(run({"evaluate.clients": "accuracy"}).by_client) == {"round", "accuracy"}


class Halves(Softmax, tag="halves"):
    """A problem whose number of clients has the wrong shape."""

    def client_measures(self):
        return {"half": lambda block, X: np.full(99, 0.5)}


def test_a_number_of_the_wrong_shape_is_refused():
    with pytest.raises(UserError, match=r"^the function that client_measures of the problem has for 'half' returns"):
        run({"evaluate.clients": ["half"]}, problem=Halves())


def test_nodes_of_a_graph_are_evaluated_at_the_mean_model():
    result = run(algorithm={"name": "dgd"}, graph="ring", selection="all")
    assert np.allclose(result.by_client["accuracy"].mean(axis=1), result.rounds["accuracy"][ROUNDS])


@pytest.mark.torch
def test_what_a_problem_measures_is_stored_too():
    pytest.importorskip("torch", reason="PyTorch is not there: pip install mpifed[torch]")
    net = {"name": "torch", "module": "torch.nn:Linear", "arguments": {"in_features": 3, "out_features": 1}}
    data = {"name": "linreg-noniid", "clients": 4, "features": 3}
    result = run(data=data, problem=net | {"loss": "mse", "metric": "r2"})
    assert np.allclose(result.by_client["r2"].mean(axis=1), result.rounds["r2"][ROUNDS])


def test_a_file_has_it_beside_the_other_columns_of_clients_for_xarray_too(tmp_path):
    path = tmp_path / "out.h5"
    whole = mpifed.run(STUDY, path=path, progress=False)
    found = mpifed.load(path)
    assert found.by_client["accuracy"].tobytes() == run().by_client["accuracy"].tobytes()
    assert "accuracy" not in found.clients
    group = xarray.load_dataset(path, group="clients", engine="h5netcdf")
    assert group["accuracy"].dims == ("stored_round", "client")
    assert group["stored_round"].values.tolist() == ROUNDS
    assert group["samples"].dims == ("client",)
    data = found.to_xarray()
    assert data["client_accuracy"].dims == ("round", "client")
    assert np.array_equal(data["client_accuracy"].sel(round=4), whole.by_client["accuracy"][2])
    assert np.isnan(data["client_accuracy"].sel(round=3)).all()


def test_show_has_a_line_with_the_median_and_the_worst_tenth():
    result = run()
    last = np.sort(result.by_client["accuracy"][-1])
    words = " ".join(result.summary().split())
    assert (
        f"clients' training accuracy median {format_number(np.median(last))}, worst tenth "
        f"{format_number(last[:2].mean())}" in words
    )


def test_a_run_that_does_not_ask_for_it_evaluates_and_stores_nothing_of_the_kind(tmp_path, monkeypatch):
    monkeypatch.setattr(ClientEvaluation, "by_client", None)
    path = tmp_path / "out.h5"
    mpifed.run(STUDY, {"evaluate.clients": False}, path=path, progress=False)
    assert [len(values) for values in mpifed.load(path).by_client.values()] == [0]
    with h5py.File(path) as file:
        assert "accuracy" not in file["clients"]
        assert "round" not in file["clients"]


def test_a_file_from_elsewhere_with_other_shapes_is_refused(tmp_path):
    path = tmp_path / "out.h5"
    mpifed.run(STUDY, path=path, progress=False)
    with h5py.File(path, "r+") as file:
        del file["clients/stored_round"]
        file["clients/stored_round"] = np.zeros((2, 2))
    with pytest.raises(
        UserError, match=r"clients/stored_round has type float64 and shape \(2, 2\), but must be a column of"
    ):
        mpifed.load(path).by_client  # noqa: B018
