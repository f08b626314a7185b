"""evaluate.unseen: clients that never train, and are tested before and after steps of their own."""

import numpy as np
import pytest
import scipy.sparse
import xarray

import mpifed
from mpifed import RunError, UserError
from mpifed.engine.unseen import Unseen
from tests.helpers.commands import mpifed as command

M, N = 12, 5
RNG = np.random.default_rng(7)
SIZES = RNG.integers(6, 20, M)
TESTS = RNG.integers(3, 8, M)
W = RNG.normal(size=(M, N))


def drawn(sizes):
    """Samples of all clients, each with a model of its own."""
    X = [RNG.normal(size=(d, N)) for d in sizes]
    y = [(rows @ w > 0).astype(float) for rows, w in zip(X, W, strict=True)]
    return X, y


TRAIN, TEST = drawn(SIZES), drawn(TESTS)
STUDY = {"problem": {"name": "logistic", "mu": 0.0}, "algorithm": {"name": "fedavg", "step": 0.5}, "rounds": 4}
COUNTED = ("objective", "grad_norm_sq", "accuracy", "bytes_up", "bytes_down")


def data(clients=range(M), sparse=False):
    """The data of some clients."""
    X, y, X_test, y_test = (np.concatenate([part[i] for i in clients]) for part in (*TRAIN, *TEST))
    if sparse:
        X, X_test = map(scipy.sparse.csr_array, (X, X_test))
    own = np.array([*clients])
    return mpifed.arrays(X, y, SIZES[own], test=(X_test, y_test, TESTS[own]))


def run(*changes, **settings):
    return mpifed.run(STUDY | {"data": data()}, *changes, progress=False, **settings)


def shares(x, clients):
    """The share of the test samples of each client that a model of each classifies correctly."""
    models = np.broadcast_to(x, (len(clients), N))
    return [np.mean((TEST[0][i] @ w > 0) == TEST[1][i]) for i, w in zip(clients, models, strict=True)]


def slope(i, w):
    """∇f_i(w)."""
    X, y = TRAIN[0][i], TRAIN[1][i]
    return X.T @ (1 / (1 + np.exp(-X @ w)) - y) / len(y)


def constant(i):
    """r_i."""
    return np.linalg.eigvalsh(TRAIN[0][i].T @ TRAIN[0][i])[-1] / (4 * SIZES[i])


@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_the_others_train_as_if_these_clients_were_not_there(sparse):
    away = [1, 2, 7, 11]
    rest = [i for i in range(M) if i not in away]
    settings = {"selection": {"share": 0.5}, "objective": {"weights": "samples"}}
    with_them = run({"evaluate.unseen": away}, data=data(sparse=sparse), **settings)
    without = run(data=data(rest, sparse), **settings)
    assert with_them.x.tobytes() == without.x.tobytes()
    for name in COUNTED:
        assert with_them.rounds[name].tobytes() == without.rounds[name].tobytes()
    assert np.array_equal(with_them.selection, without.selection)
    assert with_them.clients["data_client"].tolist() == rest
    assert with_them.clients["samples"].tolist() == SIZES[rest].tolist()
    assert with_them.m == len(rest)


@pytest.mark.parametrize(("step", "steps"), [(None, 5), (0.3, 2)])
def test_they_are_tested_at_the_servers_model_and_after_gradient_steps_of_their_own(step, steps):
    away = [0, 5, 6]
    evaluate = {"unseen": away, "unseen_steps": steps, "every": 2} | ({"unseen_step": step} if step else {})
    result = run(evaluate=evaluate, record={"models": 1})
    found = result.unseen
    assert found["round"].tolist() == [0, 2, 4]
    for row, round in enumerate(found["round"]):
        x = result.models["x"][round]
        models = np.tile(x, (3, 1))
        for _ in range(steps):
            models = [w - (step or 1 / constant(i)) * slope(i, w) for i, w in zip(away, models, strict=True)]
        assert np.allclose(found["accuracy"][row], shares(x, away))
        assert np.allclose(found["accuracy_after"][row], shares(models, away))
    assert set(found) == {"round", "accuracy", "accuracy_after", "data_client", "samples"}
    assert found["data_client"].tolist() == away
    assert found["samples"].tolist() == SIZES[away].tolist()


def flame(i, x, steps=5):
    theta = x
    for _ in range(steps):
        theta = theta - 0.1 * (slope(i, theta) + 2.0 * (theta - x))
    return theta


def ditto(i, x):
    return flame(i, x, 3)


def apfl(i, x):
    v, w = x, x
    for _ in range(4):
        v = v - 0.5 * 0.3 * slope(i, 0.3 * v + 0.7 * w)
        w = w - 0.5 * slope(i, w)
    return 0.3 * v + 0.7 * w


@pytest.mark.parametrize(
    ("name", "options", "personal"),
    [
        ("flame", {"lam": 2.0, "lr": 0.1, "batch_size": 0}, flame),
        ("flame", {"lam": 2.0, "lr": 0.1, "batch_size": 0, "center": "local"}, flame),
        ("pfedme", {"lam": 2.0, "lr": 0.1, "batch_size": 0}, flame),
        ("ditto", {"lam": 2.0, "lr": 0.1, "inner": 3, "step": 0.5}, ditto),
        ("apfl", {"alpha": 0.3, "k0": 4, "step": 0.5}, apfl),
    ],
)
def test_a_personal_method_makes_their_models_from_the_servers_as_in_one_of_its_rounds(name, options, personal):
    evaluate = {"unseen": [3, 4], "clients": ["deviance", "accuracy"]}
    result = run(algorithm={"name": name} | options, evaluate=evaluate)
    models = [personal(i, result.x) for i in (3, 4)]
    losses = [
        2 * np.mean(np.log1p(np.exp(-np.abs(z))) + np.maximum(z, 0) - TEST[1][i] * z)
        for i, z in ((i, TEST[0][i] @ w) for i, w in zip((3, 4), models, strict=True))
    ]
    assert np.allclose(result.unseen["personal_accuracy"][-1], shares(models, [3, 4]))
    assert np.allclose(result.unseen["personal_deviance"][-1], losses, rtol=1e-12)
    assert result.unseen["deviance_after"].shape == (5, 2)


def test_a_share_or_a_number_is_drawn_by_the_seed_and_no_other_draw_changes():
    share, again, number, other = (
        run({"evaluate.unseen": wanted}, seed=seed, rounds=0).unseen["data_client"]
        for wanted, seed in ((0.25, 3), (0.25, 3), (3, 3), (0.25, 4))
    )
    assert share.tolist() == again.tolist() == number.tolist()
    assert share.tolist() == sorted({*share.tolist()})
    assert (len(share), len(other)) == (3, 3)
    assert share.tolist() != other.tolist()
    generated = {"name": "synthetic", "clients": 10, "features": 4, "classes": 2, "least": 6, "most": 12}
    sizes = run(data=generated, rounds=0).clients["samples"]
    parts = run({"evaluate.unseen": 0.3}, data=generated, rounds=0)
    assert parts.clients["samples"].tolist() == sizes[parts.clients["data_client"]].tolist()
    assert parts.unseen["samples"].tolist() == sizes[parts.unseen["data_client"]].tolist()


@pytest.mark.parametrize(("wanted", "count"), [(0.01, 1), (0.3, 4), (0.2, 2), (1, 1)])
def test_a_share_is_rounded_to_whole_clients_at_least_one_and_1_is_one_client(wanted, count):
    assert len(run({"evaluate.unseen": wanted}, rounds=0).unseen["data_client"]) == count


@pytest.fixture
def sites(tmp_path):
    """The study on a table whose rows say which of four sites they belong to."""
    names = ("lyon", "bern", "rome", "oslo")
    lines = [f"{k * k % 11},{k % 2},{names[k % 4]}" for k in range(60)]
    (tmp_path / "sites.csv").write_text("\n".join(["a,y,site", *lines]))
    data = {"name": "file", "path": str(tmp_path / "sites.csv"), "target": "y", "client": "site"}
    return lambda unseen: run({"evaluate.unseen": unseen, "data.test": 0.2}, data=data)


def test_clients_are_named_or_numbered_in_the_order_of_their_names(sites):
    """bern, lyon, oslo, rome."""
    models = set()
    for unseen in (["rome", "bern"], [3, "bern"], [0, 3]):
        result = sites(unseen)
        assert result.unseen["data_client"].tolist() == [0, 3]
        models.add(result.x.tobytes())
    assert len(models) == 1
    assert sites("oslo").unseen["data_client"].tolist() == [2]


@pytest.mark.parametrize(
    ("wanted", "sentence"),
    [
        (["romme"], "evaluate.unseen names client 'romme', and the clients are bern, lyon, oslo, rome; did you mean"),
        (["rome", 3], "evaluate.unseen names a client twice: name each once"),
    ],
)
def test_a_name_that_no_client_has_is_refused_with_those_there_are(wanted, sentence, sites):
    with pytest.raises(UserError) as error:
        sites(wanted)
    assert str(error.value).startswith(sentence)


def test_names_reach_a_run_from_the_command_line(sites, tmp_path):
    words = [f"data.path={tmp_path / 'sites.csv'}", "data=file", "data.target=y", "data.client=site", "rounds=1"]
    for given in ('["bern", "rome"]', "bern"):
        study = [*words, "problem=logistic", f"evaluate.unseen={given}"]
        done = command("run", *study, "-q", "-o", tmp_path / "out.h5", "--force")
        assert done.code == 0, done.err
        assert mpifed.load(tmp_path / "out.h5").unseen["data_client"].tolist() == ([0, 3] if "[" in given else [0])
    again = command("resume", tmp_path / "out.h5", "rounds=2", "-q")
    assert again.code == 0, again.err


def same(one, other):
    assert one.keys() == other.keys()
    assert all(one[name].tobytes() == other[name].tobytes() for name in one)


@pytest.mark.parametrize("last", [3, 4], ids=["between evaluations", "with its last round evaluated"])
def test_a_run_that_goes_on_has_the_same_rows_once(last, tmp_path):
    path = tmp_path / "out.h5"
    settings = {"evaluate.unseen": 0.3, "evaluate.every": 2, "evaluate.clients": "auc"}
    generated = {"name": "synthetic", "clients": 12, "features": 4, "classes": 2, "least": 20, "most": 40, "test": 0.3}
    study = {"data": generated, "problem": "logistic"}
    study |= {"algorithm": {"name": "pfedme", "lr": 0.1, "batch_size": 5}, "rounds": 5}
    whole = mpifed.run(study, settings, progress=False)
    mpifed.run(study, settings, path=path, progress=False, callback=lambda round, row: round == last)
    resumed = mpifed.resume(path, progress=False)
    assert resumed.unseen["round"].tolist() == [0, 2, 4, 5]
    same(resumed.unseen, whole.unseen)
    same(resumed.by_client, whole.by_client)


def test_a_file_and_xarray_have_them_beside_the_other_clients(tmp_path):
    path = tmp_path / "out.h5"
    whole = run({"evaluate.unseen": 2, "evaluate.clients": True}, path=path)
    found = mpifed.load(path)
    same(found.unseen, whole.unseen)
    group = xarray.load_dataset(path, group="unseen", engine="h5netcdf")
    assert group["accuracy_after"].dims == ("stored_round", "client")
    assert group["accuracy_after"].attrs["description"].startswith("After steps of the client's own: Fraction")
    table = found.to_xarray()["unseen_accuracy_after"]
    assert table.dims == ("round", "unseen")
    assert table.shape == (5, 2)


def test_they_are_tested_at_the_mean_model_of_a_graph_and_in_asynchronous_runs():
    graph = run({"evaluate.unseen": [2, 3]}, algorithm="dgd", graph="ring", selection="all")
    waiting = run({"evaluate.unseen": [2, 3]}, asynchronous={"arrivals": 2}, system={"speed": 1e3})
    for result in (graph, waiting):
        assert np.allclose(result.unseen["accuracy"][-1], shares(result.x, [2, 3]))


def test_features_that_all_clients_scale_together_are_noted():
    table = {"x": RNG.normal(size=40), "y": RNG.integers(2, size=40) * 1.0, "site": np.repeat(np.arange(4), 10)}
    pandas = pytest.importorskip("pandas")
    frame = mpifed.table(pandas.DataFrame(table), target="y", client="site", standardise="pooled")
    notes = run({"evaluate.unseen": 1}, data=frame).attrs["notes"]
    assert "deviation 1 over the training samples of all clients, also of those that never train" in notes


def test_a_run_that_asks_for_none_does_nothing_of_the_kind(monkeypatch):
    monkeypatch.setattr(Unseen, "__init__", None)
    result = run({"evaluate.unseen": []})
    assert len(result.unseen["round"]) == 0
    assert "data_client" not in result.clients


def test_steps_that_diverge_end_the_run_with_a_sentence():
    problem = {"name": "softmax", "lam": 3.0}
    with pytest.raises(RunError, match=r"^the model of client 4, which never trains, is not finite after steps of its"):
        run(problem=problem, evaluate={"unseen": [4], "unseen_step": 1e9, "unseen_steps": 60})


def test_how_many_never_train_and_which_of_these_have_no_test_samples_is_said():
    assert "3 of the 12 clients never train and 9 do" in run({"evaluate.unseen": 0.25}).summary()
    X, y = (np.concatenate(part) for part in TRAIN)
    result = run({"evaluate.unseen": 2}, data=mpifed.arrays(X, y, SIZES))
    assert "evaluated on what their own steps train on" in result.attrs["notes"]


@pytest.mark.torch
@pytest.mark.parametrize(("dtype", "rtol"), [("float64", 1e-9), pytest.param("float32", 1e-3, marks=pytest.mark.slow)])
def test_on_a_device_they_are_the_same(dtype, rtol):
    pytest.importorskip("torch", reason="PyTorch is not there: pip install mpifed[torch]")
    pytest.importorskip("array_api_compat", reason="array-api-compat is not there: pip install mpifed[torch]")
    evaluate = {"unseen": 0.3, "clients": ["accuracy", "auc", "deviance", "calibration_error", "observed_expected"]}
    flame = {"name": "flame", "lr": 0.1, "batch_size": 0}
    numpy, torch = (run(algorithm=flame, evaluate=evaluate, kernels=name, dtype=dtype) for name in ("numpy", "torch"))
    for tables in ("unseen", "by_client"):
        one, other = getattr(numpy, tables), getattr(torch, tables)
        assert one.keys() == other.keys()
        assert all(np.allclose(one[name], other[name], rtol=rtol, equal_nan=True) for name in one)
