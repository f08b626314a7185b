"""A final model as a fit: the numbers of the pooled regression, and what regularisation or weights leave out."""

import gc
import re
import resource

import h5py
import numpy as np
import pytest
from scipy import stats

import mpifed
from mpifed.core.errors import UserError
from mpifed.report.fit_page import format_fit
from tests.helpers.commands import mpifed as command

SIZES = (40, 25, 60, 31, 44)
D, N = sum(SIZES), 3
RNG = np.random.default_rng(5)
A = np.column_stack([RNG.standard_normal((D, N - 1)), np.ones(D)])
NUMBERS = A @ [1.0, -0.5, 2.0] + RNG.standard_normal(D)
CLASSES = (RNG.random(D) < 1 / (1 + np.exp(-A @ [1.0, -0.5, 0.3]))).astype(float)
DATA = {name: mpifed.arrays(A, b, SIZES) for name, b in (("numbers", NUMBERS), ("classes", CLASSES))}
CLIENT = np.repeat(range(len(SIZES)), SIZES)


def run(problem, data, weights="samples", /, **more):
    table = {"objective": {"weights": weights}, "data": DATA[data]} | more
    return mpifed.run({"algorithm": "newton", "rounds": 20} | table, problem=problem)


def close(found, wanted):
    np.testing.assert_allclose(found, wanted, rtol=1e-8)


def test_least_squares_are_those_of_all_samples_together_and_their_coefficients_no_logarithms():
    fit = run("least-squares", "numbers").fit()
    x, rss, *_ = np.linalg.lstsq(A, NUMBERS)
    variance = rss[0] / (D - N)
    error = np.sqrt(variance * np.diag(np.linalg.inv(A.T @ A)))
    close(fit.x, x)
    close(fit.error, error)
    close(fit.p, 2 * stats.t(D - N).sf(np.abs(x / error)))
    close(fit.high - fit.low, 2 * stats.t(D - N).ppf(0.975) * error)
    close(fit.likelihood, stats.norm(A @ x, np.sqrt(rss[0] / D)).logpdf(NUMBERS).sum())
    close(fit.aic, 2 * N - 2 * fit.likelihood)
    assert (fit.samples, fit.clients, fit.law, fit.notes) == (D, len(SIZES), "t", [])
    assert fit.gradient < 1e-12 > fit.decrement
    assert fit.ratio == ""
    assert "ratio" not in format_fit("", fit, "csv")


def test_one_client_has_no_errors_by_client_and_an_exact_fit_none_at_all():
    fit = run("least-squares", "numbers", data=mpifed.arrays(A, NUMBERS, (D,))).fit()
    assert np.isnan(fit.robust).all()
    assert fit.notes == ["there are no standard errors by client, for they compare clients, and there is one"]
    for problem, labels in (("least-squares", 0 * NUMBERS), ("gamma", NUMBERS**0)):
        with pytest.raises(UserError, match=f"^the model fits all {D} samples exactly"):
            run(problem, "numbers", data=mpifed.arrays(A[:, :2], labels, SIZES)).fit()


def test_a_penalised_fit_has_no_bound_where_it_is_far_and_no_distance_where_columns_depend_on_each_other(tmp_path):
    study = {"objective": {"weights": "samples", "l1": 0.1}, "selection": "all"}
    twice = mpifed.arrays(np.column_stack([A, A]), NUMBERS, (D,))
    fit = run("least-squares", "numbers", data=twice, algorithm={"name": "gd", "gamma": 0.1}, **study).fit()
    assert fit.gap < 1
    assert np.isnan(fit.distance)
    study |= {"start": str(tmp_path / "start.npz"), "algorithm": {"name": "gd", "gamma": 1e-300}, "rounds": 1}
    for bias in (-300.0, -1000.0):  # e^z is tiny, or 0
        np.savez(tmp_path / "start.npz", x=[0.0, 0.0, bias])
        data = mpifed.arrays(A[:, :2], np.full(D, 9.0), SIZES)
        assert np.isnan(run("poisson", "numbers", data=data, **study).fit().gap)


def test_with_equal_clients_only_errors_by_client_are_known():
    fit = run("least-squares", "numbers", "clients").fit()
    assert np.isnan(fit.error).all()
    assert np.isnan([fit.likelihood, fit.dispersion]).all()
    close(fit.statistic, fit.x / fit.robust)
    assert "objective.weights" in fit.notes[0]


def test_how_far_a_run_is_from_the_optimum():
    short = run("least-squares", "numbers", algorithm={"name": "gd", "gamma": 0.1}, rounds=20, selection="all").fit()
    best = run("least-squares", "numbers").fit()
    close(short.decrement**2 / 2, short.f - best.f)


NOT_THERE = {  # problem, labels, columns
    "least-squares": ("least-squares", "numbers", 3),
    "logistic": ({"name": "logistic", "mu": 0.0}, "classes", 3),
    "huber": ({"name": "huber", "delta": 3.0}, "numbers", 2),
    "softmax": ({"name": "softmax", "lam": 0.01, "bias": False}, "classes", 3),
}


@pytest.mark.parametrize(
    ("name", "weights", "sizes"),
    [
        *[(name, weights, SIZES) for name, weights in zip(NOT_THERE, ["clients", "samples"] * 2, strict=True)],
        ("logistic", "clients", (D,)),
    ],
)
def test_a_run_that_is_not_at_its_optimum_says_so_in_every_format_and_what_it_advises_helps(name, weights, sizes):
    problem, labels, columns = NOT_THERE[name]
    data = mpifed.arrays(A[:, :columns], NUMBERS if labels == "numbers" else CLASSES, sizes)

    def told(**more):
        fit = run(problem, labels, weights, data=data, **more).fit()
        return fit, [note for note in fit.notes if "from the optimum" in note]

    slow = {"name": "gd", "gamma": 0.1}
    short, (note,) = told(algorithm=slow, rounds=5, selection="all")
    assert re.search(r'standard errors.* give it more rounds or smaller steps, or take algorithm = "newton"$', note)
    for form in ("terminal", "markdown", "latex"):
        assert note in format_fit("", short, form)
    rows = [line.split(",") for line in format_fit("", short, "csv").splitlines()]
    step = rows[0].index("newton_step")
    assert [float(row[step]) for row in rows[1:]] == short.step.tolist()
    best, none = told()
    long = {"rounds": 1000, "selection": "all", "evaluate": {"every": 1000}}
    assert none == told(algorithm=slow, **long)[1] == []
    assert (np.abs(short.x + short.step - best.x) < np.abs(short.x - best.x)).any()


def test_clients_with_the_same_samples_are_no_sign_of_a_run_that_is_far():
    twice = mpifed.arrays(np.tile(A[:50, :2], (2, 1)), np.tile(NUMBERS[:50], 2), (50, 50))
    assert not any("from the optimum" in note for note in run("huber", "numbers", "clients", data=twice).fit().notes)


def test_a_table_of_csv_has_its_notes_on_the_error_stream(tmp_path):
    study = ["algorithm=gd", "algorithm.gamma=0.01", "selection=all", "rounds=2", "data.clients=6", "data.features=4"]
    done = command("fit", *study, "--format", "csv", cwd=tmp_path)
    assert done.out.startswith("coefficient,")
    assert re.search(r"^mpifed: this model is \S+ standard errors by client from the optimum", done.err, re.MULTILINE)


def test_a_penalised_run_that_was_too_short_says_so():
    study = {
        "objective": {"weights": "samples", "l1": 0.1},
        "selection": "all",
        "algorithm": {"name": "gd", "gamma": 0.1},
    }
    for rounds, there in ((3, True), (300, False)):
        notes = run("least-squares", "numbers", rounds=rounds, evaluate={"every": rounds}, **study).fit().notes
        assert any("above its least value" in note for note in notes) == there


STANDARD = {"name": "file", "standardise": "pooled"}


def standardised(folder, problem="least-squares", X=A[:, :2], labels=NUMBERS, source=None, **more):
    np.savez(folder / "a.npz", X=X, y=labels, sizes=np.array(SIZES))
    data = STANDARD | {"path": str(folder / "a.npz")} | (source or {})
    study = {"algorithm": "newton", "rounds": 20, "objective": {"weights": "samples"}, "data": data} | more
    return mpifed.run(study, problem=problem, path=folder / "out.h5", force=True)


def test_standardised_features_without_an_intercept_leave_a_number_that_the_advice_makes_a_coefficient(tmp_path):
    fit = standardised(tmp_path).fit()
    (note,) = (note for note in fit.notes if "data.ones = true" in note)
    constant = float(re.search(r"all scores have (\S+) beside", note)[1])
    scores = (A[:, :2] - A[:, :2].mean(axis=0)) / A[:, :2].std(axis=0) @ mpifed.load(tmp_path / "out.h5").x
    np.testing.assert_allclose(A[:, :2] @ fit.x + constant, scores, atol=1e-5)
    best = standardised(tmp_path, source={"ones": True}).fit()
    close(best.x, np.linalg.lstsq(A, NUMBERS)[0])
    assert best.notes == []


def test_softmax_and_cox_are_in_the_units_of_the_table_too(tmp_path):
    softmax = {"name": "softmax", "lam": 0.01}
    study = {"X": A[:, :2], "labels": CLASSES, "algorithm": {"name": "gd", "gamma": 1.0}, "selection": "all"}
    result = standardised(tmp_path, softmax | {"bias": False}, source={"ones": True}, rounds=20, **study)
    W = result.x.reshape(2, 3)
    own = result.fit().x.reshape(2, 3)
    Z = np.column_stack([(A[:, :2] - A[:, :2].mean(axis=0)) / A[:, :2].std(axis=0), np.ones(D)])
    np.testing.assert_allclose(A @ own.T, Z @ W.T, rtol=1e-8, atol=1e-12)
    assert "the regularisation is of coefficients for a standard deviation" in "".join(result.fit().notes)
    times = np.abs(NUMBERS) + 0.01
    raw = run("cox", "numbers", data=mpifed.arrays(A[:, :2], times, SIZES)).fit()
    fit = standardised(tmp_path, "cox", labels=times).fit()
    close(fit.ratios(), raw.ratios())
    close([fit.error, fit.robust], [raw.error, raw.robust])
    assert fit.notes == raw.notes


def test_a_table_that_changed_and_a_result_without_means_are_told(tmp_path):
    standardised(tmp_path, source={"ones": True})
    np.savez(tmp_path / "a.npz", X=A[:, :2] + [0, 1], y=NUMBERS, sizes=np.array(SIZES))
    with pytest.raises(
        UserError, match=r"the data have changed: feature 1 .*had the mean .* now: give the same samples"
    ):
        mpifed.load(tmp_path / "out.h5").fit()
    before = standardised(tmp_path, source={"ones": True}).fit()
    with h5py.File(tmp_path / "out.h5", "r+") as file:
        del file["model/mean"], file["model/deviation"]
    after = mpifed.load(tmp_path / "out.h5").fit()
    close(after.x, before.x)
    assert re.match("this result has no means and deviations of its features, as those of an older", after.notes[0])


def test_means_of_each_client_have_no_unit_of_the_table_and_the_fit_says_so(tmp_path):
    (note,) = standardised(tmp_path, source={"ones": True, "standardise": "own"}).fit().notes
    assert (
        'for a standard deviation of each feature at each client, as data.standardise = "own" has it: "pooled"' in note
    )
    assert not mpifed.load(tmp_path / "out.h5").units


def test_a_penalised_fit_of_standardised_features_is_in_the_units_of_the_table(tmp_path):
    study = {"objective": {"weights": "samples", "l1": 0.01}, "selection": "all", "algorithm": "gd", "rounds": 200}
    result = standardised(tmp_path, source={"ones": True}, **study)
    fit = result.fit()
    close(fit.x[:2], result.x[:2] / A[:, :2].std(axis=0))
    close(A @ fit.x, (A[:, :2] - A[:, :2].mean(axis=0)) @ fit.x[:2] + result.x[2])
    assert "the estimates for a unit" in fit.notes[-1]
    assert "from the optimum, for standardised features: " in format_fit("", fit)


def test_a_problem_without_a_hessian_is_refused():
    result = run("mlp", "classes", rounds=1, algorithm="fedavg")
    with pytest.raises(UserError, match="mlp has no Hessian"):
        result.fit()


def test_the_command_runs_a_study_or_reads_a_result(tmp_path):
    words = ["algorithm=newton", "rounds=9", "objective.weights=samples", "data.clients=6", "data.features=4"]
    done = command("fit", *words, cwd=tmp_path)
    assert done.code == 0, done
    assert not list(tmp_path.iterdir())
    assert command("run", *words, "-q", "-o", "out.h5", cwd=tmp_path).code == 0
    again = command("fit", "out.h5", cwd=tmp_path)
    assert again.out == done.out
    assert "std error  by client" in done.out
    assert "from the optimum: ‖∇f‖" in done.out
    rows = command("fit", "out.h5", "--format", "csv", cwd=tmp_path).out.splitlines()
    assert rows[0].startswith("coefficient,estimate,estimate_sd,standard_error")
    assert len(rows) == 5
    assert "\\toprule" in command("fit", "out.h5", "--format", "latex", cwd=tmp_path).out
    assert command("fit", "out.h5", "rounds=3", cwd=tmp_path).code == 2
    assert "--format html is wrong" in command("fit", "out.h5", "--format", "html", cwd=tmp_path).err


def test_a_result_keeps_the_arrays_of_its_run_and_a_file_takes_the_same_again(tmp_path):
    rng = np.random.default_rng(8)
    X, y = rng.standard_normal((30, 2)), rng.standard_normal(30)
    study = {"algorithm": "newton", "rounds": 3}
    result = mpifed.run(study, data=mpifed.arrays(X, y, [10, 20]), path=tmp_path / "out.h5")
    fit = result.fit()  # nobody else holds these arrays
    del result
    gc.collect()
    loaded = mpifed.load(tmp_path / "out.h5")
    with pytest.raises(UserError, match=r"or fit with mpifed\.load\(PATH\)\.fit\(data=mpifed\.arrays\(X, y, clients\)"):
        loaded.fit()
    with pytest.raises(UserError, match=r"^\S+out\.h5: the data are not those of the run, whose sha256 is \w{12}…"):
        loaded.fit(data=mpifed.arrays(X + 1, y, [10, 20]))
    np.testing.assert_array_equal(loaded.fit(data=mpifed.arrays(X, y, [10, 20])).error, fit.error)


def test_a_result_whose_table_has_moved_is_told_where_it_is(tmp_path):
    table = tmp_path / "visits.csv"
    rows = [f"{k % 7},{k % 3},{k * k % 11}" for k in range(40)]
    table.write_text("\n".join(["a,site,y", *rows]) + "\n")
    study = {"algorithm": "newton", "rounds": 4, "problem": "poisson", "objective": {"weights": "samples"}}
    data = {"name": "file", "path": str(table), "client": "site"}
    mpifed.run(study, data=data, path=tmp_path / "out.h5")
    loaded = mpifed.load(tmp_path / "out.h5")
    before = loaded.fit()
    moved = table.rename(tmp_path / "moved.csv")
    with pytest.raises(
        UserError, match=r'visits\.csv" is not a file: .*; the fit of a result reads its samples again: '
    ):
        loaded.fit()
    np.testing.assert_array_equal(loaded.fit(data={"path": str(moved)}).error, before.error)
    done = command("fit", "out.h5", "data.path=moved.csv", cwd=tmp_path)
    assert done.code == 0, done
    assert f"{before.error[0]:.3g}"[:4] in done.out
    assert "data.path=FILE behind the result file" in command("fit", "out.h5", cwd=tmp_path).err


RATIOS = {"logistic": "odds ratio", "poisson": "rate ratio", "gamma": "ratio of means", "cox": "hazard ratio"}


@pytest.mark.parametrize("name", RATIOS)
def test_a_fit_prints_ratios_with_their_intervals(name):
    problem = {"name": name} | ({"mu": 0.0} if name == "logistic" else {})
    labels = CLASSES if name == "logistic" else np.abs(NUMBERS)
    columns = A if name == "logistic" else A[:, :2]
    fit = run(problem, "numbers", data=mpifed.arrays(columns, labels, SIZES)).fit()
    own = fit.ratios()
    shown = len(own) - (name in ("poisson", "gamma"))  # which have a bias
    np.testing.assert_array_equal(own[:shown], np.exp(np.column_stack([fit.x, fit.low, fit.high]))[:shown])
    assert np.isnan(own[shown:]).all()
    head, first, *_ = format_fit("", fit).split("\n\n")[1].splitlines()
    assert re.split(r"\s{2,}", head)[-3] == fit.ratio == RATIOS[name]
    assert float(first.split()[-3]) == pytest.approx(own[0, 0], rel=1e-3)
    rows = [line.split(",") for line in format_fit("", fit, "csv").splitlines()]
    at = [rows[0].index(key) for key in ("ratio", "ratio_low", "ratio_high")]
    assert [float(rows[1][k]) for k in at] == own[0].tolist()


def test_a_ratio_beyond_all_numbers_is_left_out():
    small = mpifed.arrays(A * [1e-4, 1, 1], CLASSES, SIZES)
    fit = run({"name": "logistic", "mu": 0.0}, "classes", data=small).fit()
    assert fit.x[0] > 1e3
    assert format_fit("", fit).split("\n\n")[1].splitlines()[1].split()[-3:][0] == "–"


def test_data_larger_than_those_of_the_run_are_refused_before_they_are_made(tmp_path):
    path = tmp_path / "out.h5"
    words = ["problem=logistic", "problem.mu=0.1", "data=gaussian", "data.clients=4", "data.features=3", "rounds=2"]
    assert command("run", *words, "-q", "-o", path).code == 0
    for old, new, told in (
        ("features = 3", "features = 100000000", "data.features = 100000000 of .* its run has 3 features"),
        ("clients = 4", "clients = 100000000", "data.clients = 100000000 of .* its run has 4 clients"),
    ):
        with h5py.File(path, "r+") as file:
            whole = file.attrs["config"]
            file.attrs["config"] = whole.replace(old, new)
            assert file.attrs["config"] != whole
        for words in (["fit"], ["certify"]):
            before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            done = command(*words, path)
            assert re.fullmatch(rf"mpifed: {told}\n", done.err), done.err
            assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kB
        with h5py.File(path, "r+") as file:
            file.attrs["config"] = whole


def test_bytes_that_cannot_be_those_of_the_run_are_refused(tmp_path):
    path = tmp_path / "out.h5"
    data = {"name": "gaussian", "clients": 4, "features": 3}
    mpifed.run(problem={"name": "logistic", "mu": 0.1}, data=data, rounds=2, path=path)
    with h5py.File(path, "r+") as file:
        del file["rounds/bytes_up"]
        file["rounds/bytes_up"] = np.full(3, np.inf)
    done = command("fit", path)
    assert done.code == 2
    assert re.fullmatch(rf"mpifed: {path}.*the result has inf bytes up and.*\n", done.err), done.err


def test_a_model_of_private_uploads_is_published_without_means_of_the_data_and_estimates_are_not(tmp_path):
    private = {"name": "fedepm", "noise": "clipped", "epsilon": 1e14}
    study = {"algorithm": private, "objective": {"weights": "clients"}, "rounds": 40}
    result = standardised(tmp_path, {"name": "logistic", "mu": 0.1}, labels=CLASSES, **study)
    assert not result.units
    with h5py.File(tmp_path / "out.h5") as file:
        assert set(file["model"]) == {"parameter", "x"}
    note = (
        "x of the result, not the estimates, for which means and deviations of the true data are taken, is a model that"
    )
    assert result.fit().notes[0].startswith(note)
    close(result.fit().x, result.x / A[:, :2].std(axis=0))


UNITS_OF_THE_RUN = {
    "data.sources.file.File.common": ("columns are scaled", "^columns are scaled: estimates are for these col"),
    "problems.linear_model.LinearModel.linear": ("", "^estimates are for a standard deviation of each feature, "),
}


@pytest.mark.parametrize("place", UNITS_OF_THE_RUN)
def test_estimates_that_stay_in_units_of_the_run_say_so(place, tmp_path, monkeypatch):
    value, told = UNITS_OF_THE_RUN[place]
    monkeypatch.setattr(f"mpifed.{place}", value)
    fit = standardised(tmp_path, source={"ones": True}).fit()
    assert re.search(told, fit.notes[-1])
    close(fit.x, mpifed.load(tmp_path / "out.h5").x)
