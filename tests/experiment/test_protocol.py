"""What is trained, chosen and reported: numbers of validation samples, patience, the best model, tuning, tables."""

import itertools
import re

import numpy as np
import pytest

import mpifed
from tests.helpers.commands import mpifed as command

RNG = np.random.default_rng(11)
M, N, C = 6, 5, 3
SIZES = RNG.integers(12, 40, M).tolist()
SIZES[4] = 2  # too few for three roles
W = RNG.standard_normal((C, N))
X = RNG.standard_normal((sum(SIZES), N))
Y = np.argmax(X @ W.T + RNG.standard_normal((len(X), C)), axis=1)
STUDY = {"problem": "softmax", "rounds": 12, "algorithm": {"name": "fedavg", "k0": 4, "step": 1.0}}
OVERFITS = STUDY | {"rounds": 60, "stop": {"patience": 4}, "record": {"best": True, "models": 1}}


def three(labels=Y, test=0.2, validation=0.25, **options):
    return mpifed.arrays(X, labels, SIZES, test=test, validation=validation, **options)


def run(data=None, **settings):
    return mpifed.run(STUDY | settings, data=data or three(), progress=False)


def samples(role, data=None):
    """X and y of a role of each client that has some, from a loop over clients."""
    dataset = (data or three()).load(0, "float64")
    own = (dataset.read(role, i, i + 1) for i in range(M))
    return [(A, b) for A, b in own if len(b)]


def softmax_numbers(x, parts):
    """Mean over clients of the mean loss, of accuracies, and the accuracy of all samples: plain loops."""
    W, bias = x[: C * N].reshape(C, N), x[C * N :]
    losses, hits = [], []
    for A, b in parts:
        Z = A @ W.T + bias
        logs = Z - np.log(np.exp(Z).sum(axis=1, keepdims=True))
        losses.append(-np.mean([row[int(k)] for row, k in zip(logs, b, strict=True)]))
        hits.append(Z.argmax(axis=1) == b)
    return np.mean(losses), np.mean([hit.mean() for hit in hits]), np.concatenate(hits).mean()


def test_numbers_of_each_role_are_those_of_loops_over_its_clients():
    result = run(record={"models": 1})
    for k, x in enumerate(result.models["x"]):
        row = {name: column[k] for name, column in result.rounds.items()}
        own = ("validation_objective", "validation_accuracy", "validation_accuracy_pooled")
        assert np.allclose([row[name] for name in own], softmax_numbers(x, samples("validation")), rtol=1e-12)
        tested = [row[name] for name in ("test_objective", "accuracy", "accuracy_pooled")]
        assert np.allclose(tested, softmax_numbers(x, samples("test")), rtol=1e-12)
        assert abs(row["objective"] - softmax_numbers(x, samples("training"))[0]) <= 1e-12
    assert (result.attrs["missing"], result.attrs["validation_missing"]) == (1, 0)
    assert "1 of 6 clients has no test samples" in result.attrs["notes"]
    assert result.about["validation_accuracy"][1].startswith("Fraction of a client's validation samples that")


def test_who_has_no_validation_sample_is_in_no_mean_and_counted():
    result = run(three(test=1, validation=0.25))
    assert (result.attrs["missing"], result.attrs["validation_missing"]) == (0, 1)
    assert "1 of 6 clients has no validation samples, and is left out of columns validation_…" in result.attrs["notes"]
    assert result.rounds["validation_objective"][0] == pytest.approx(np.log(C), rel=1e-12)  # of clients that have some


@pytest.mark.parametrize(
    ("problem", "algorithm"), [("least-squares", "gd"), ("logistic", "fedadmm"), ("mlp", "fedavg")]
)
def test_losses_of_held_out_samples_are_those_of_a_run_that_trains_on_them(problem, algorithm):
    labels = Y if problem == "mlp" else (Y > 0) * 1.0
    settings = {"problem": problem, "algorithm": algorithm, "rounds": 3}
    data = three(labels)
    result = mpifed.run(settings | {"record": {"models": 1}}, data=data, progress=False)
    for role in ("validation", "test"):
        parts = samples(role, data)
        own = mpifed.arrays(
            np.vstack([A for A, _ in parts]), np.hstack([b for _, b in parts]), [len(b) for _, b in parts]
        )
        np.savez("start.npz", x=result.models["x"][-1])
        other = mpifed.run(settings | {"rounds": 0, "start": "start.npz"}, data=own, progress=False)
        assert abs(other.rounds["objective"][0] - result.rounds[f"{role}_objective"][-1]) <= 1e-12
        if problem != "least-squares":
            name = "accuracy" if role == "test" else f"{role}_accuracy"
            assert abs(other.rounds["accuracy"][0] - result.rounds[name][-1]) <= 1e-12


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_numbers_of_clients_and_of_their_own_models_are_there_by_role():
    result = run(algorithm={"name": "ditto", "k0": 2}, evaluate={"clients": True})
    assert {"validation_accuracy", "validation_personal_accuracy"} < result.by_client.keys()
    for name in ("validation_accuracy", "validation_personal_accuracy"):
        mean = np.nanmean(result.by_client[name], axis=1)
        assert np.allclose(mean, result.rounds[name], rtol=1e-12)
        assert np.allclose(result.over_clients(name)["mean"], mean, rtol=1e-12)
    assert (result.over_clients("accuracy")["missing"] == 1).all()


def test_patience_stops_where_a_plain_loop_does_and_the_best_model_is_that_of_the_loop():
    result = run(**OVERFITS)
    values = run(**OVERFITS | {"stop": {}, "record": {}}).rounds["validation_objective"]
    best, waited, at = np.inf, 0, 0
    for k, value in enumerate(values):
        best, waited, at = (value, 0, k) if value < best else (best, waited + 1, at)
        if waited == 4:
            break
    assert result.cr == k < 60
    assert result.stop_reason == f"patience: 4 evaluations without a validation_objective better than {best:.4g}"
    assert (result.best.round, result.best.by) == (at, "validation_objective")
    assert np.array_equal(result.best.x, result.models["x"][at])
    assert result.best.numbers["accuracy"] == result.rounds["accuracy"][at]
    assert (result.attrs["chosen_by"], result.attrs["best_round"]) == ("validation_objective", at)


@pytest.mark.parametrize("by", ["validation_accuracy", "test", "grad_norm_sq", "accuracy"])
def test_what_chooses_may_be_another_column_and_test_samples_are_said(by):
    result = run(stop={"by": by}, record={"best": True})
    column = {"test": "test_objective"}.get(by, by)
    values = result.rounds[column] * (-1 if column in ("test_objective", "grad_norm_sq") else 1)
    assert (result.best.by, result.best.round) == (column, int(np.argmax(values)))
    assert ("of test samples" in result.attrs["notes"]) == (by in ("test", "accuracy"))


def test_without_validation_samples_the_objective_chooses_and_no_test_sample():
    result = run(three(validation=0), record={"best": True})
    assert result.best.by == "objective"
    assert "test_objective" not in result.rounds


def test_only_more_than_delta_is_an_improvement():
    patient, hasty = (run(**OVERFITS | {"stop": {"patience": 4, "delta": delta}}).cr for delta in (0.0, 0.05))
    assert hasty < patient


@pytest.mark.parametrize("cut", [3, 9])
@pytest.mark.parametrize("every", [1, 2])
def test_a_resumed_run_goes_on_with_its_patience_and_best_to_the_bit(cut, every):
    settings = OVERFITS | {"evaluate": {"every": every}}
    whole = run(**settings)
    mpifed.run(settings | {"rounds": cut, "stop": {}}, data=three(), path="part.h5", progress=False)
    resumed = mpifed.resume("part.h5", {"rounds": 60, "stop": settings["stop"]}, data=three(), progress=False)
    assert resumed.stop_reason == whole.stop_reason
    assert (resumed.best.round, resumed.best.by) == (whole.best.round, whole.best.by)
    assert np.array_equal(resumed.best.x, whole.best.x)
    assert np.array_equal(resumed.rounds["validation_objective"], whole.rounds["validation_objective"], equal_nan=True)


def test_an_evaluation_that_was_made_because_a_run_ended_there_is_forgotten_when_it_goes_on():
    settings = STUDY | {"rounds": 60, "record": {"best": True}}
    at = run(**settings).best.round
    settings |= {"evaluate": {"every": next(every for every in (2, 3, 5) if at % every)}}
    whole = run(**settings)
    mpifed.run(settings | {"rounds": at}, data=three(), path="part.h5", progress=False)
    resumed = mpifed.resume("part.h5", {"rounds": 60}, data=three(), progress=False)
    assert mpifed.load("part.h5").best.round == resumed.best.round == whole.best.round != at
    assert np.array_equal(resumed.best.x, whole.best.x)


def test_accuracy_stops_by_validation_samples_and_by_test_samples_only_if_asked():
    stopped = run(stop={"accuracy": 0.5})
    assert re.fullmatch(r"accuracy: 0\.\d+ of validation samples >= 0\.5", stopped.stop_reason)
    assert "of test samples" in run(stop={"accuracy": 0.5, "by": "test"}).stop_reason
    assert "of training samples" in run(three(test=0, validation=0), stop={"accuracy": 0.5}).stop_reason
    with pytest.raises(mpifed.UserError, match=r"^stop.accuracy = 0.5 would look at test samples, which are to report"):
        run(three(validation=0), stop={"accuracy": 0.5})


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"stop": {"by": "validation"}}, r"^stop.by = \"validation\" needs validation samples, and there are none"),
        (
            {"stop": {"by": "acuracy", "patience": 2}},
            r"^stop.by = \"acuracy\" is wrong: it must be validation, test or",
        ),
        ({"stop": {"delta": 0.1}}, r"delta is for patience"),
        (
            {"stop": {"patience": 5}, "rounds": 30, "evaluate": {"every": 10}},
            r"^stop.patience = 5 cannot end a run ",
        ),
        ({"data": {"stratify": True}, "problem": "least-squares"}, r"^data.stratify = true divides classes, and least"),
    ],
)
def test_settings_that_cannot_choose_are_told_in_one_sentence(settings, sentence):
    table = {"data": {"name": "gaussian", "clients": 3}, "problem": "logistic", "algorithm": "gd"}
    if "data" in settings:
        settings = settings | {"data": {"name": "digits", "clients": 9} | settings["data"]}
    with pytest.raises(mpifed.UserError, match=sentence):
        mpifed.run(table | settings, progress=False)


def test_tuning_chooses_by_validation_samples_and_refuses_test_samples():
    words = ["data=synthetic", "data.clients=5", "data.features=4", "data.classes=3", "data.least=20", "data.most=40"]
    words += ["problem=softmax", "rounds=4", "--seeds", "0,1", "--method", "fedavg k0=2 step=0.01,0.1,1", "-q"]
    asked = command("tune", *words, "--measure", "accuracy", "-o", "none")
    assert asked.code == 2
    assert "would choose by test samples, which are to report and not to choose by" in asked.err
    chosen = command("tune", *words, "data.validation=0.2", "--measure", "accuracy", "-o", "chosen").out
    assert "by validation samples" in chosen
    steps = (0.01, 0.1, 1)
    files = {step: [mpifed.load(f"chosen/fedavg,seed={k},step={step}.h5") for k in (0, 1)] for step in steps}
    mean = {step: np.mean([run.rounds["validation_accuracy"][-1] for run in runs]) for step, runs in files.items()}
    assert f"step={max(mean, key=mean.get)}" in chosen
    asked = command("tune", *words, 'stop.by="test"', "--measure", "accuracy", "-o", "asked").out
    assert 'by test samples, for stop.by = "test"' in asked


def test_a_table_has_numbers_of_the_best_round_and_a_picture_marks_it():
    result = run(**OVERFITS)
    result.save("out.h5")
    table = command("compare", "out.h5", "--at", "best", "--columns", "rounds,accuracy", "--format", "csv").out
    cells = dict(itertools.zip_longest(*(line.split(",") for line in table.splitlines()[:2])))
    assert int(float(cells["rounds"])) == result.best.round
    assert float(cells["accuracy"]) == pytest.approx(result.best.numbers["accuracy"], rel=1e-6)
    text = mpifed.compare([result], ["accuracy"], at="best")
    assert "numbers are of each run's best round by validation_objective, not of its last" in text
    (panel,) = mpifed.plot([result], "accuracy").axes
    stars = [line for line in panel.lines if line.get_marker() == "*"]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in stars] == [
        (result.best.round, result.best.numbers["accuracy"])
    ]
    assert f"best round, by validation_objective  {result.best.round}" in result.summary()
    assert command("compare", "out.h5", "--at", "middle").code == 2


@pytest.mark.torch
def test_a_loop_in_pytorch_that_stops_by_patience_has_the_same_round_and_the_same_best_model():
    torch = pytest.importorskip("torch")
    result = run(**OVERFITS | {"selection": "all"})
    parts = {
        role: [(torch.tensor(A), torch.tensor(b).long()) for A, b in samples(role)]
        for role in ("training", "validation")
    }

    def loss(x, sample, label):
        return torch.nn.functional.cross_entropy(sample @ x[: C * N].view(C, N).T + x[C * N :], label)

    server, best, waited, k = torch.zeros(C * N + C, dtype=torch.float64), np.inf, 0, 0
    while True:
        value = torch.stack([loss(server, *part) for part in parts["validation"]]).mean().item()
        waited += 1
        if value < best:
            best, waited, at, chosen = value, 0, k, server.clone()
        if waited == 4:
            break
        models = []
        for part in parts["training"]:
            x = server.clone().requires_grad_()
            stepper = torch.optim.SGD([x], lr=1.0)
            for _ in range(4):
                stepper.zero_grad()
                loss(x, *part).backward()
                stepper.step()
            models.append(x.detach())
        server = torch.stack(models).mean(dim=0)
        k += 1
    assert (result.cr, result.best.round) == (k, at)
    assert np.abs(result.best.x - chosen.numpy()).max() <= 1e-12 * np.abs(result.best.x).max()
    assert abs(result.best.numbers["validation_objective"] - best) <= 1e-12
