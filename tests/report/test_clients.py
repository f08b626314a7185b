"""Numbers of clients over all of them: mean, worst tenth, spread, their table and their picture."""

import re

import numpy as np
import pytest

import mpifed
from mpifed.core.errors import UserError
from mpifed.report import clients
from mpifed.report.clients import compare_clients
from mpifed.report.compare import TableOptions
from mpifed.results.columns import Columns
from mpifed.results.over_clients import summarise_clients
from tests.helpers.commands import mpifed as command
from tests.helpers.compared_runs import cells
from tests.helpers.figures import axes_of, curve

DATA = {"name": "synthetic", "clients": 15, "features": 4, "classes": 2, "least": 8, "most": 20, "test": 0.3}
STUDY = {"data": DATA, "problem": "logistic", "rounds": 3}
NUMBERS = {"evaluate.clients": ["accuracy", "auc", "observed_expected"], "evaluate.unseen": 4}
METHODS = {"fedavg": {"epochs": 5}, "flame": {"lr": 0.1, "batch_size": 0}}


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Two methods with two seeds each."""
    folder = tmp_path_factory.mktemp("runs")
    for name, options in METHODS.items():
        for seed in (0, 1):
            algorithm = {"name": name} | options
            path = folder / f"{name}-{seed}.h5"
            mpifed.run(STUDY, NUMBERS, algorithm=algorithm, seed=seed, path=path, progress=False)
    return sorted(folder.glob("*.h5"))


def table(*rows):
    return Columns(round=np.arange(len(rows)), accuracy=np.array(rows), rmse=np.array(rows), other=np.array(rows))


def test_mean_worst_tenth_and_spread_are_those_of_the_clients_that_have_a_number():
    values = np.r_[np.arange(21.0)[::-1], np.nan]
    found = summarise_clients(table(values, values + 1), "accuracy")
    assert found["round"].tolist() == [0, 1]
    assert found["mean"].tolist() == [10.0, 11.0]
    assert found["worst_tenth"][0] == 1.0  # 0, 1, 2: a tenth of 21, rounded up
    assert np.isclose(found["sd"][0], np.arange(21.0).std())
    assert (found["iqr"][0], found["min"][0], found["max"][0], found["missing"][0]) == (10.0, 0.0, 20.0, 1)
    assert summarise_clients(table(values), "rmse")["worst_tenth"][0] == 19.0  # less is better
    assert np.isnan(summarise_clients(table(values), "other")["worst_tenth"][0])  # neither is
    found = summarise_clients(table(np.full(3, np.nan)), "accuracy")
    assert all(np.isnan(found[name][0]) for name in ("mean", "worst_tenth", "sd", "iqr", "min", "max"))
    assert found["missing"][0] == 3
    assert summarise_clients(table([np.inf, 1.0, 2.0]), "rmse")["worst_tenth"][0] == np.inf  # of a run that diverged


def test_a_result_has_them_for_both_kinds_of_clients(runs):
    result = mpifed.load(runs[0])
    rows = result.by_client["auc"]
    found = result.over_clients("auc")
    assert np.allclose(found["mean"], np.nanmean(rows, axis=1))
    assert found["missing"].tolist() == np.isnan(rows).sum(axis=1).tolist()
    unseen = result.over_clients("accuracy_after", unseen=True)
    assert np.allclose(unseen["mean"], result.unseen["accuracy_after"].mean(axis=1))
    with pytest.raises(UserError, match="unknown number of clients 'acc'; did you mean 'auc'"):
        result.over_clients("acc")
    plain = mpifed.run(STUDY | {"algorithm": "fedavg"}, progress=False)
    asks = r"evaluate\.clients or evaluate\.unseen asks"
    with pytest.raises(UserError, match=f"no numbers of clients are stored: {asks}"):
        plain.over_clients()
    with pytest.raises(UserError, match=f"^no result has numbers of clients: {asks}"):
        clients.plot_clients([plain])


def test_the_table_has_a_row_for_each_method_kind_of_client_and_model(runs):
    done = command("compare", *runs, "--clients", "--columns", "accuracy")
    head, rows = cells(done.out)
    assert head == ["algorithm", "n", "clients", "number", "mean", "worst tenth", "sd", "IQR", "min", "max"]
    told = [["trained", "accuracy"], ["unseen", "accuracy"], ["unseen", "accuracy after"]]
    assert [row[2:4] for row in rows if row[0] == "FedAvg"] == told
    own = "personal accuracy"
    assert [row[3] for row in rows if row[0] == "FLAME"] == ["accuracy", own, "accuracy", "accuracy after", own]
    ends = [mpifed.load(path).over_clients("accuracy")["mean"][-1] for path in runs[:2]]
    mean, sd = (float(part) for part in rows[0][4].split(" ± "))
    assert np.isclose(mean, np.mean(ends), atol=0.01)
    assert np.isclose(sd, np.std(ends, ddof=1), atol=0.01)


def test_clients_without_a_number_are_counted_in_the_table(runs):
    head, rows = cells(command("compare", *runs, "--clients").out)
    missing = {tuple(row[:4]): row[-1] for row in rows}
    assert head[-1] == "missing"
    counts = [int(np.isnan(mpifed.load(path).by_client["auc"][-1]).sum()) for path in runs[:2]]
    assert sum(counts) > 0
    assert np.isclose(float(missing["FedAvg", "2", "trained", "auc"].split(" ± ")[0]), np.mean(counts))


def test_the_table_is_written_in_all_forms(runs):
    signs = {"csv": "algorithm,n,clients,number,mean,mean_sd", "latex": r"\toprule", "markdown": "| :--"}
    for form, sign in signs.items():
        assert sign in command("compare", *runs[:2], "--clients", "--format", form).out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("compare {} --clients --columns acc", "unknown number of clients 'acc'; did you mean 'auc'?"),
        ("compare {} --clients --sort accuracy", "--sort has no effect on --clients: leave it out"),
        ("plot {} --clients --x bytes", "--x has no effect on --clients: leave it out"),
        ("plot {} --clients --page", "--page and --clients are two pictures: draw them one at a time"),
    ],
)
def test_what_cannot_be_is_refused(words, sentence, runs):
    pytest.importorskip("matplotlib")
    assert command(*words.format(runs[0]).split()) == (2, "", f"mpifed: {sentence}\n")


def test_a_run_that_was_killed_has_no_row_and_before_its_first_evaluation_no_curve(runs):
    pytest.importorskip("matplotlib")
    result = mpifed.load(runs[0])
    result.attrs["status"] = "running"
    with pytest.raises(UserError, match="no run with numbers of clients has finished: --all counts the others too"):
        compare_clients([result], TableOptions(format="csv"))
    assert f"\n\nleft out: {runs[0]} (running, 3 rounds)" in compare_clients(
        [result, mpifed.load(runs[2])], TableOptions()
    )
    for tables in (result.by_client, result.unseen):
        tables.update({name: rows[:0] for name, rows in tables.items()})
    assert [len(axis.get_lines()) for axis in axes_of(clients.plot_clients([result]))] == [0, 0, 2]


def test_the_picture_shows_rounds_clients_and_those_that_never_train_and_the_command_their_table(runs, tmp_path):
    pytest.importorskip("matplotlib")
    results = [mpifed.load(path) for path in runs]
    figure = clients.plot_clients(results, ["accuracy", "personal_accuracy"])
    rounds, ranks, models, own_rounds, own_ranks = axes_of(figure)
    assert [axis.get_xlabel() for axis in (rounds, own_ranks)] == ["round", "clients (%), by rising number"]
    kinds = ["server's\nmodel", "after own\nsteps", "personal\nmodel"]
    assert [tick.get_text() for tick in models.get_xticklabels()] == kinds
    spreads = [result.over_clients("accuracy") for result in results[:2]]
    assert curve(rounds) == [[0, 1, 2, 3], np.mean([found["mean"] for found in spreads], axis=0).tolist()]
    worst = np.mean([found["worst_tenth"] for found in spreads], axis=0)
    assert np.array_equal(rounds.get_lines()[1].get_ydata(), worst)
    assert len(ranks.get_lines()) == 2
    assert len(own_rounds.get_lines()) == 2, "FedAvg has no personal models"
    done = command("plot", *runs, "--clients", "--y", "accuracy", "-o", tmp_path / "clients.png")
    assert done.out == command("compare", *runs, "--clients", "--columns", "accuracy").out + (
        f"written to {tmp_path / 'clients.png'}\n"
    )


def test_show_has_a_line_for_each_number_of_both_kinds_of_clients_and_says_where_many_are(runs):
    options = {"evaluate.clients": ["accuracy", "observed_expected"], "evaluate.unseen": 4}
    words = " ".join(mpifed.run(STUDY | {"algorithm": "fedavg"}, options, progress=False).summary().split())
    assert re.search(r" clients' accuracy median \S+, worst tenth", words)
    assert re.search(r"unseen clients' accuracy_after median \S+, worst tenth", words)
    assert re.search(r"clients' observed_expected median \S+, \S+ … \S+", words)
    assert "15 in all: compare --clients" in mpifed.load(runs[-1]).summary()
