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
from mpifed.report.fit_page import page
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
    assert "ratio" not in page("", fit, "csv")


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
    head, first, *_ = page("", fit).split("\n\n")[1].splitlines()
    assert re.split(r"\s{2,}", head)[-3] == fit.ratio == RATIOS[name]
    assert float(first.split()[-3]) == pytest.approx(own[0, 0], rel=1e-3)
    rows = [line.split(",") for line in page("", fit, "csv").splitlines()]
    at = [rows[0].index(key) for key in ("ratio", "ratio_low", "ratio_high")]
    assert [float(rows[1][k]) for k in at] == own[0].tolist()


def test_a_ratio_beyond_all_numbers_is_left_out():
    small = mpifed.arrays(A * [1e-4, 1, 1], CLASSES, SIZES)
    fit = run({"name": "logistic", "mu": 0.0}, "classes", data=small).fit()
    assert fit.x[0] > 1e3
    assert page("", fit).split("\n\n")[1].splitlines()[1].split()[-3:][0] == "–"


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
