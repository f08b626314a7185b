"""What clients run on, and how long they take, in numbers of their own and in the seconds of a run."""

import numpy as np
import pytest

import mpifed
from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.core.toml import toml_value
from mpifed.experiment.config import experiment
from mpifed.experiment.rehearsed_work import ClientSubset, rehearse
from mpifed.features.simulated_time.distributions import Distribution
from tests.helpers.algorithm_cases import GRAPH_SETTINGS, GRAPHED, SETTINGS
from tests.helpers.algorithm_runs import build
from tests.helpers.devices import devices

HAND = {"speed": 1000, "latency": 0.1, "bandwidth_down": 100, "bandwidth_up": 50}
TRAVELS = 0.2 + 40 / 100 + 40 / 50  # seconds of a model of 5 numbers of 8 bytes, both ways
LOGISTIC = {"name": "gaussian", "clients": 9, "samples": 11, "features": 5}
GD = {"solver": {"name": "gd", "steps": 3}}


def run(**tables):
    """The result of a few rounds on a small problem."""
    small = {"data": {"clients": 9, "features": 5}, "algorithm": "fedavg", "rounds": 1, "selection": "all"}
    return mpifed.run(small | {"system": HAND} | tables)


def seconds(**tables):
    """The simulated time at the end, and the most samples of a client."""
    result = run(**tables)
    return result.rounds["simulated_seconds"][-1], result.clients["samples"].max()


def test_what_a_client_has_depends_on_the_seed_and_is_drawn_for_each_property_by_itself():
    table = {"name": "lognormal", "median": 10}
    one = devices([10] * 50, speed=table, bandwidth_up=table, bandwidth_down=table)
    again, other = (devices([10] * 50, seed=seed, speed=table) for seed in (0, 1))
    assert np.array_equal(one.speed, again.speed)
    assert not np.array_equal(one.speed, other.speed)
    assert len({values.tobytes() for values in (one.speed, one.up, one.down)}) == 3


def test_jitter_spreads_computing_by_its_logarithm_anew_in_every_draw():
    everyone = np.arange(20000)
    shaky = devices([10] * 20000, speed=100.0, latency=0.25, jitter=0.5)
    first, second = (shaky.round_times(everyone, shaky.factor(everyone, 1, again)) - 0.5 for again in (0, 1))
    assert np.median(first) == pytest.approx(0.1, rel=0.03)
    assert np.log(first).std() == pytest.approx(0.5, rel=0.03)
    assert abs(np.corrcoef(np.log(first), np.log(second))[0, 1]) < 0.04


def test_simulated_seconds_by_hand_of_which_single_precision_halves_what_travels_and_scaffold_sends_twice_as_much():
    result = run(data={"clients": 3, "features": 5}, rounds=4)
    slowest = TRAVELS + 5 * result.clients["samples"].max() / 1000  # k0 = 5 steps
    np.testing.assert_allclose(result.rounds["simulated_seconds"], slowest * np.arange(5), rtol=1e-12)
    assert result.about["simulated_seconds"][0] == "s"
    assert list(result.rounds["selected"]) == [0, 3, 3, 3, 3]
    plain, single, scaffold = (seconds(**more)[0] for more in ({}, {"dtype": "float32"}, {"algorithm": "scaffold"}))
    assert single == pytest.approx(plain - 0.6)
    assert scaffold == pytest.approx(plain + 1.2)


def test_only_those_who_are_asked_take_time_but_fedgia_waits_for_all_clients():
    result = run(selection="uniform", rounds=6)
    for chosen, spent in zip(result.selection[1:], np.diff(result.rounds["simulated_seconds"]), strict=True):
        d = result.clients["samples"][chosen[chosen >= 0]]
        assert spent == pytest.approx(TRAVELS + 5 * d.max() / 1000, rel=1e-12)
    spent, d = seconds(algorithm="fedgia", selection={"count": 1}, rounds=2)
    assert spent == pytest.approx(2 * (TRAVELS + d / 1000), rel=1e-12)


def test_two_draws_add_up_and_the_candidates_of_a_biased_selection_take_their_time():
    for draws, name in enumerate(("feddcd", "accfeddcd"), 1):
        rounds = run(data=LOGISTIC, algorithm={"name": name, **GD}).rounds
        assert rounds["simulated_seconds"][-1] == pytest.approx(draws * (TRAVELS + 3 * 11 / 1000))
        assert rounds["selected"][-1] == draws * 9
    result = run(selection={"name": "biased", "count": 2, "batch_size": 7})
    d = result.clients["samples"][result.selection[1]]
    asked = 0.2 + 40 / 100 + 7 / 1000 + 8 / 50
    assert result.rounds["simulated_seconds"][-1] == pytest.approx(asked + TRAVELS + 5 * d.max() / 1000)


def test_passes_stand_in_for_what_the_algorithm_computes_also_where_it_cannot_tell():
    spent, d = seconds(system=HAND | {"passes": 2.5})
    assert spent == pytest.approx(TRAVELS + 2.5 * d / 1000)
    spent, _ = seconds(data=LOGISTIC, algorithm="feddcd", system={"speed": 10, "passes": 4})
    assert spent == pytest.approx(4 * 11 / 10)


def test_the_clock_of_a_method_that_asks_all_goes_on_where_it_stopped(tmp_path):
    table = {"algorithm": "newton", "data": LOGISTIC, "system": HAND | {"passes": 2}, "stop": {"gradient": 0.0}}
    whole = run(**table, rounds=4)
    path = tmp_path / "out.h5"
    mpifed.run(table | {"rounds": 2, "selection": "all"}, path=path)
    again = mpifed.resume(path, {"rounds": 4})
    np.testing.assert_array_equal(again.rounds["simulated_seconds"], whole.rounds["simulated_seconds"])


DUAL = {"data": {"name": "quadratic", "clients": 12, "features": 10, "mu": 0.2, "L": 1.0}, "problem": "quadratic"}
CONVEX = {"data": {"clients": 12, "features": 10, "least": 6, "most": 25}}
MERGED = {"batch_size": 4, "epochs": 1.5, "last_batch": "merge"}
WORK = {name: (name, {}) for name in Algorithm.choices}
BATCHED = [name for name in Algorithm.choices if hasattr(Algorithm.member(name, "algorithm"), "last_batch")]
WORK |= {f"{name}, merged": (name, MERGED) for name in BATCHED}
WORK |= {
    "feddcd": ("feddcd", GD),
    "accfeddcd": ("accfeddcd", GD),
    "ad-admm": ("ad-admm", GD),
    "fedadmm": ("fedadmm", {"eps0": 0.0}),
    "fedadmm-insa": ("fedadmm-insa", {"c": 1e-30}),
    "ef21-page": ("ef21-page", {"p": 1.0}),  # its work is that of an average round
    "fedavg, batches": ("fedavg", {"batch_size": 7, "k0": 3}),
    "fedavg, epochs": ("fedavg", {"batch_size": 7, "epochs": 2}),
    "fedprox, batches": ("fedprox", {"batch_size": 7, "k0": 3}),
    "scaffold, epochs": ("scaffold", {"batch_size": 4, "epochs": 3}),
    "flame, full": ("flame", {"batch_size": 0}),
    "sfedavg, quiet": ("sfedavg", {"noise": "none"}),
    "sfedprox, quiet": ("sfedprox", {"noise": "none"}),
    "fedepm, clipped": ("fedepm", {"noise": "clipped"}),
}


def cases():
    """By default the first method for each way to say it and to train, and those with options of their own."""
    seen = set()
    for name, (method, options) in WORK.items():
        cls = Algorithm.member(method, "algorithm")
        ways = (cls.sample_gradients, getattr(cls, "update", None))
        yield name if options or ways not in seen else pytest.param(name, marks=pytest.mark.slow)
        seen.add(ways)


@pytest.mark.parametrize("name", [*cases()])
def test_what_an_algorithm_says_of_its_work_is_what_it_does(name):
    name, options = WORK[name]
    settings = SETTINGS.get(name, {}) | GRAPH_SETTINGS.get(name, {}) | options
    graph = {"graph": "ring"} if name in GRAPHED else {}
    config = experiment({**(DUAL if "dcd" in name else CONVEX), **graph, "algorithm": {"name": name, **settings}})
    data = config.data.load(0, "float64")
    counted, second = rehearse(config, ClientSubset(data, np.arange(data.m)))
    work = config.algorithm.sample_gradients(data.sizes)
    assert (work is None) == bool(second)
    if work is not None:
        np.testing.assert_array_equal(counted, np.tile(work, (3, 1)))
    if name == "fedadmm":  # it says at most
        assert build("fedadmm", {"k0": 4, "inner_max": 3}).sample_gradients(np.array([10])) == 90


def test_rounds_of_marina_take_the_time_of_one_gradient_where_the_coin_asks_for_all_of_it_and_otherwise_of_two():
    method = {"name": "marina", "p": 0.4, "gamma": 0.01, "compressor": {"name": "randk", "k": 2}}
    rounds = run(data=LOGISTIC, algorithm=method, rounds=12, system={"speed": 1000}).rounds
    whole = np.diff(rounds["bytes_up"]) == 9 * 5 * 8  # what all clients then send
    assert whole.any()
    assert not whole.all()
    np.testing.assert_allclose(np.diff(rounds["simulated_seconds"]), np.where(whole, 1, 2) * 11 / 1000)


@pytest.mark.parametrize("given", [[1, 2.5, 4], {"name": "list", "values": [1, 2.5, 4]}, "own.txt", "own.csv"])
def test_clients_have_the_numbers_of_a_list_or_of_a_file_beside_the_experiment_file(given, tmp_path):
    if isinstance(given, str):
        (tmp_path / given).write_text("1, 2.5\n4\n")
    file = tmp_path / "study.toml"
    file.write_text(
        f"rounds = 1\ndata.clients = 3\nalgorithm = 'fedavg'\nselection = 'all'\nsystem.latency = {toml_value(given)}\n"
    )
    assert mpifed.run(file).rounds["simulated_seconds"][-1] == 8


@pytest.mark.parametrize(
    ("table", "median", "mean"),
    [
        (3.5, 3.5, 3.5),
        ({"name": "constant", "value": 2}, 2, 2),
        ({"name": "uniform", "low": 1, "high": 5}, 3, 3),
        ({"name": "lognormal", "median": 100, "sigma": 0.5}, 100, 100 * np.exp(0.125)),
        ({"name": "exponential", "mean": 4}, 4 * np.log(2), 4),
        ({"name": "pareto", "scale": 2, "shape": 4}, 2 * 2**0.25, 2 * 4 / 3),
    ],
)
def test_a_distribution_has_the_median_and_the_mean_it_says_and_its_spread_or_tail(table, median, mean):
    values = Distribution.build(table, "speed").draw(np.random.default_rng(1), 20000)
    assert values.shape == (20000,)
    assert np.median(values) == pytest.approx(median, rel=0.03)
    assert values.mean() == pytest.approx(mean, rel=0.03)
    if "sigma" in str(table):
        assert np.log(values).std() == pytest.approx(0.5, rel=0.03)
    if "scale" in str(table):
        assert values.min() >= 2
        assert (values > 4).mean() == pytest.approx(2.0**-4, abs=0.01)
