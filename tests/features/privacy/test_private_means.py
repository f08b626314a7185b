"""What the table [privacy] promises: sensitivity, noise, denominators, the ε that is spent, and what it says."""

import math

import h5py
import numpy as np
import pytest

import mpifed
from mpifed.algorithms.fedavg import FedAvg
from mpifed.core.errors import UserError
from mpifed.experiment.config import Job, experiment
from mpifed.experiment.run import start
from mpifed.features.privacy.accounting import GaussianRounds
from mpifed.features.privacy.mechanisms import Release, draw_noise, find_step
from tests.helpers.mortal import Mortal, RankDies

pytest.importorskip("dp_accounting")

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((20, 6, 3)), RNG.standard_normal((20, 6))
WORDS = {"problem": "least-squares", "progress": None, "stop": {"gradient": 0.0, "diverged": 0}}
STEPS = {"name": "fedavg", "step": {"name": "constant", "a": 0.05}}


def run(X=X, y=Y, rounds=3, algorithm=STEPS, **words):
    """Run a method on the arrays of clients, all in every round unless ``selection`` says otherwise."""
    clients = np.repeat(np.arange(len(X)), X.shape[1])
    data = mpifed.arrays(X.reshape(-1, X.shape[2]), y.reshape(-1), clients)
    return mpifed.run(data=data, rounds=rounds, algorithm=algorithm, **WORDS | {"selection": "all"} | words)


def changes(result):
    """Return how the model of a run moved in each round."""
    return np.diff(result.models["x"], axis=0)


def recorded(**words):
    return run(record={"models": 1}, **words)


def test_a_client_with_any_data_moves_the_model_by_twice_the_bound_over_the_denominator():
    other, labels = X.copy(), Y.copy()
    other[4], labels[4] = 1e6, -1e6
    private = {"clip": 0.1, "noise_multiplier": 0}
    moved = np.linalg.norm(run(rounds=1, privacy=private).x - run(other, labels, rounds=1, privacy=private).x)
    assert 0.05 * 2 * 0.1 / 20 < moved <= 2 * 0.1 / 20
    assert np.linalg.norm(run(rounds=1).x - run(other, labels, rounds=1).x) > 1e3


def test_a_client_that_is_there_or_not_moves_the_model_by_the_bound_over_the_expected_number():
    words = {"rounds": 1, "selection": {"name": "poisson", "share": 1.0}}
    private = {"clip": 0.1, "noise_multiplier": 0}
    there, alone = run(privacy=private, **words).x * 20, run(X[1:], Y[1:], privacy=private, **words).x * 19
    assert 0.05 * 0.1 < np.linalg.norm(there - alone) <= 0.1 * (1 + 1e-9)


def test_a_client_whose_numbers_are_not_finite_sends_zeros():
    other = X.copy()
    other[4] = 1e200
    private = {"clip": 0.1, "noise_multiplier": 1e-7}
    left = run(X[np.arange(20) != 4], Y[np.arange(20) != 4], rounds=1, privacy=private).x * 19
    np.testing.assert_allclose(run(other, rounds=1, privacy=private).x * 20, left, atol=1e-6)


def test_bounds_hold_for_both_uploads_of_scaffold_together():
    words = {"algorithm": {"name": "scaffold", "step": {"name": "constant", "a": 0.05}}, "rounds": 1}
    plain = run(**words)
    free = run(privacy={"clip": 1e9, "noise_multiplier": 0}, **words)
    np.testing.assert_allclose(free.x, plain.x, rtol=1e-12)
    # dy = y − x and dc = −dy/(k0 γ) − c_i: their joint norm is far above that of dy alone
    tight = run(privacy={"clip": 1e-3, "noise_multiplier": 0}, **words)
    assert np.linalg.norm(tight.x) <= 1e-3 * 0.05 * 5 / math.hypot(1, 0.05 * 5) * (1 + 1e-9)


def test_noise_has_the_deviation_z_times_clip_over_the_denominator():
    words = {"X": np.zeros((20, 1, 60)), "y": Y[:, :1], "rounds": 20, "evaluate": {"every": 20}}
    words |= {"selection": {"name": "poisson", "share": 0.02}}
    private = {"clip": 2.0, "noise_multiplier": 1.5}
    seeded, drawn = (recorded(privacy=private | seed, **words) for seed in ({"noise_seed": 1}, {}))
    for result in (seeded, drawn):
        # 1,200 numbers: the estimate is within four of its own deviations
        assert abs(changes(result).std() / (1.5 * 2.0 / 0.4) - 1) < 4 / math.sqrt(2 * 1200)
    assert seeded.clients["times_selected"].sum() < 20  # some rounds are of nobody
    assert changes(seeded).any(axis=1).all()  # they have noise too


def test_noise_and_clipped_vectors_are_whole_steps_of_a_grid_on_which_sums_are_exact():
    result = recorded(rounds=4, privacy={"clip": 0.1, "noise_multiplier": 1.0})
    step = find_step(0.1)
    assert step <= 0.1 / 1024
    total = np.diff(result.models["x"], axis=0) * 20 / step
    np.testing.assert_allclose(total, np.rint(total), atol=1e-6)  # x itself is rounded


def test_two_runs_have_other_noise_unless_it_has_a_seed():
    words = {"clip": 0.1, "noise_multiplier": 1.0}
    assert not (run(privacy=words).x == run(privacy=words).x).any()
    first, second = (run(privacy=words | {"noise_seed": 7}) for _ in range(2))
    assert (first.x == second.x).all()
    assert first.attrs["privacy"].startswith("none: whoever knows privacy.noise_seed = 7")
    assert run(privacy=words).attrs["privacy"].startswith("guaranteed: ")


def test_weights_are_cut_to_the_largest_and_the_noise_is_that_of_the_heaviest():
    weights = {"objective": {"weights": [1.0] * 19 + [21.0]}}  # m p_i: 0.5, and 10.5
    free = {"clip": 1e9, "noise_multiplier": 0}
    plain = run(**weights)
    np.testing.assert_allclose(run(privacy=free, **weights).x, plain.x, rtol=1e-12)
    equal = {"objective": {"weights": [1.0] * 20}}
    np.testing.assert_allclose(run(privacy=free | {"max_weight": 0.5}, **weights).x, run(**equal).x, rtol=1e-9)
    text = statement({"clip": 1.0, "noise_multiplier": 1.0}, **weights)
    assert "noise of deviation 10.5 on" in text
    assert "moves the sum by 21 at most" in text


def statement(privacy, **words):
    """Return the ten lines of certify for these arrays."""
    from mpifed.experiment.housing import prepare_in_process
    from mpifed.features.privacy.feature import describe_study

    data = {"name": "gaussian", "clients": 20, "samples": 6, "features": 3}
    table = {"data": data, "problem": "least-squares", "rounds": 100, "algorithm": STEPS, "privacy": privacy} | words
    parts = prepare_in_process(experiment(table))
    return describe_study(parts.features, parts.setup, None)


def test_the_bound_follows_the_quantile_of_the_norms():
    algorithm = STEPS | {"step": {"name": "constant", "a": 1e-9}, "k0": 1}
    norms = np.sort(1e-9 / 6 * np.linalg.norm(np.einsum("csn,cs->cn", X, Y), axis=1))  # of steps from 0
    words = {"clip": 4 * norms[19], "noise_multiplier": 0, "quantile": 0.25, "clip_rate": 0.5}
    bounds = run(rounds=40, algorithm=algorithm, privacy=words).rounds["clip"]
    assert bounds[0] == words["clip"]
    # nobody is clipped: the first round moves it by exp(−0.5·0.75)
    assert bounds[1] == pytest.approx(bounds[0] * math.exp(-0.375), rel=1e-12)
    assert norms[3] < bounds[-1] < norms[6]


def test_epsilon_counts_rounds_under_poisson_sampling_and_else_those_of_the_client_with_most():
    private = {"clip": 0.1, "noise_multiplier": 1.0, "delta": 1e-6}
    drawn = run(rounds=9, selection={"name": "poisson", "share": 0.2}, evaluate={"every": 9}, privacy=private)
    assert drawn.rounds["epsilon_pld"][-1] == GaussianRounds(1.0, 0.2).epsilon(9, 1e-6)
    assert drawn.rounds["epsilon_rdp"][-1] == GaussianRounds(1.0, 0.2).epsilon(9, 1e-6, "rdp")
    fixed = run(rounds=9, selection={"name": "uniform", "share": 0.2}, privacy=private)
    most = int(fixed.clients["times_selected"].max())
    assert most < 9
    assert fixed.rounds["epsilon_pld"][-1] == GaussianRounds(1.0).epsilon(most, 1e-6)
    assert fixed.rounds["epsilon_pld"][0] == 0


@pytest.mark.parametrize("selection", [{"name": "poisson", "share": 0.2}, {"name": "uniform", "share": 0.2}, "all"])
def test_the_noise_that_an_epsilon_asks_for_spends_it_and_no_more(selection):
    result = run(rounds=4, selection=selection, evaluate={"every": 4}, privacy={"clip": 0.1, "epsilon": 0.5})
    assert 0.497 < result.rounds["epsilon_pld"][-1] <= 0.5


def test_a_resumed_or_longer_run_goes_on_counting(tmp_path):
    path = tmp_path / "out.h5"
    words = {"selection": {"name": "poisson", "share": 0.2}, "privacy": {"clip": 0.1, "noise_multiplier": 1.0}}
    words |= {"evaluate": {"every": 5}}
    table = {"data": {"name": "gaussian", "clients": 20, "samples": 6, "features": 3}, "problem": "least-squares"}
    table |= {"algorithm": STEPS, "stop": {"gradient": 0.0, "diverged": 0}} | words
    mpifed.run(table, rounds=6, path=path, progress=None)
    longer = mpifed.resume(path, rounds=10, progress=None)
    assert longer.rounds["epsilon_pld"][-1] == GaussianRounds(1.0, 0.2).epsilon(10, 1e-5)
    with h5py.File(path) as file:
        assert file.attrs["rounds_redrawn"] == 0


def test_noise_for_a_planned_epsilon_is_not_stretched_over_more_rounds(tmp_path):
    path = tmp_path / "out.h5"
    table = {"data": {"name": "gaussian", "clients": 20, "samples": 6, "features": 3}, "problem": "least-squares"}
    table |= {"algorithm": STEPS, "stop": {"gradient": 0.0, "diverged": 0}, "privacy": {"clip": 0.1, "epsilon": 4.0}}
    mpifed.run(table, rounds=4, path=path, progress=None)
    with pytest.raises(UserError, match=r"privacy\.epsilon = 4 was spent"):
        mpifed.resume(path, rounds=8, progress=None)


def test_what_stays_at_home_is_neither_clipped_nor_sent():
    data = {"name": "gaussian", "clients": 8, "samples": 6, "features": 3}
    words = {"data": data, "problem": {"name": "mlp", "hidden": [2]}, "rounds": 2, "selection": "all", "progress": None}
    words |= {"algorithm": STEPS | {"k0": 1}, "personal": ["head.*"], "record": {"personal": True}}
    private = mpifed.run(**words, privacy={"clip": 1e-6, "noise_multiplier": 0})
    plain = mpifed.run(**words, privacy={"clip": 1e9, "noise_multiplier": 0})
    assert private.rounds["bytes_up"][-1] == plain.rounds["bytes_up"][-1] == 2 * 8 * 8 * (3 * 2 + 2)
    first = mpifed.run(**words | {"rounds": 0}).personal
    assert np.linalg.norm((private.personal - first)[:, :8].mean(axis=0)) <= 2e-6
    assert np.linalg.norm((private.personal - first)[:, 8:]) > 1e-3


def test_each_layer_is_clipped_to_its_share_of_the_bound():
    data = {"name": "gaussian", "clients": 8, "samples": 6, "features": 3}
    words = {"data": data, "problem": {"name": "mlp", "hidden": [2]}, "rounds": 1, "selection": "all", "progress": None}
    result = mpifed.run(**words, algorithm=STEPS, privacy={"clip": 1e-4, "noise_multiplier": 0, "per": "layer"})
    change = result.x - mpifed.run(**words | {"rounds": 0}, algorithm=STEPS).x
    layers = np.split(change, [6, 8, 12])  # weights and biases of a network 3–2–2
    assert all(np.linalg.norm(layer) <= 1e-4 / 2 * (1 + 1e-6) for layer in layers)
    assert np.linalg.norm(change) > 1e-5


def test_grid_noise_is_drawn_exactly_for_its_deviation():
    noise = draw_noise(4000, 3.0, None)
    step = find_step(3.0)
    assert (noise / step == np.rint(noise / step)).all()
    assert abs(noise.std() / 3.0 - 1) < 4 / math.sqrt(8000)
    assert not draw_noise(5, 0.0, None).any()
    assert Release(1.0, 0.0).rng is None


@pytest.mark.parametrize(
    ("private", "sentence"),
    [
        ({}, "it has neither noise_multiplier nor epsilon, and it must have one of them"),
        ({"noise_multiplier": 1, "epsilon": 2.0}, "it has both noise_multiplier and epsilon"),
        ({"noise_multiplier": 1, "count_noise": 2.0}, "count_noise = 2.0 is wrong without quantile"),
        ({"noise_multiplier": 1, "quantile": 0.5, "per": "layer"}, 'per = "layer" is wrong with quantile'),
        ({"noise_multiplier": 1, "quantile": 0.5, "count_noise": 0.4}, "count_noise = 0.4 is wrong"),
        ({"noise_multiplier": 1, "per": "layer"}, "is no network and has no layers"),
        ({"noise_multiplier": 1, "max_weight": 2.0}, "uploads have no weights here"),
        ({"noise_multiplier": 1e-13}, "it must be at least"),
        ({"noise_multiplier": 1e-30}, "noise_multiplier = 1e-30 is wrong: it must be at least 1e-20"),
        ({"noise_multiplier": 1, "clip": 0.0}, "privacy.clip"),
        ({"noise_multiplier": 1, "clip": 1e-70}, "clip = 1e-70 is wrong: it must be at least 1e-60"),
        ({"noise_multiplier": 1, "clip": 1e70}, "privacy.clip"),
        ({"noise_multiplier": 1, "quantile": 0.5, "count_noise": 1e9}, "privacy.count_noise"),
        ({"noise_multiplier": 1, "delta": 1.0}, "privacy.delta"),
    ],
)
def test_a_wrong_table_is_told_in_one_sentence(private, sentence):
    with pytest.raises(UserError) as error:
        run(privacy={"clip": 0.1} | private)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


def test_ten_lines_say_mechanism_sensitivity_composition_and_assumptions():
    private = {"clip": 0.5, "noise_multiplier": 2.0}
    lines = statement(private, selection={"name": "poisson", "share": 0.1}).splitlines()
    assert len(lines) == 10
    words = [line.split()[0] for line in lines]
    assert words[:2] == ["mechanism", "sensitivity"]
    assert {"composition", "assumes", "sampling"} <= {*words}
    assert "moves the sum by 0.5 at most" in lines[1]
    assert "add or remove" in lines[1]
    assert f"ε = {GaussianRounds(2.0, 0.1).epsilon(100, 1e-5):.4g}" in "\n".join(lines)
    replaced = statement(private)
    assert "moves the sum by 1 at most" in replaced
    assert "not amplified" in replaced


def test_rounds_that_a_crash_makes_run_again_count_again(monkeypatch, tmp_path):
    deaths = [5]  # in round 5; the checkpoint is of round 3, so 4 and 5 are run again
    played = FedAvg.round

    def play(self, fed, server):
        done = played(self, fed, server)
        if deaths and fed.round == deaths[0]:
            deaths.pop()
            raise RankDies
        return done

    monkeypatch.setattr(FedAvg, "round", play)
    table = {"data": {"name": "gaussian", "clients": 20, "samples": 6, "features": 3}, "problem": "least-squares"}
    table |= {"algorithm": STEPS, "stop": {"gradient": 0.0, "diverged": 0}, "rounds": 8, "selection": "all"}
    table |= {
        "checkpoint": {"every_rounds": 3, "every_seconds": 0.0},
        "privacy": {"clip": 0.1, "noise_multiplier": 9.0},
    }
    result = start(Job(experiment(table), tmp_path / "out.h5", survive=True), Mortal()).result()
    assert result.attrs["rounds_redrawn"] == 2
    assert result.rounds["epsilon_pld"][-1] == GaussianRounds(9.0).epsilon(8 + 2, 1e-5)


def test_control_variates_do_not_tell_how_many_clients_took_part():
    # c⁺ = c + q mean, whoever replied: with one client, whose change is known, x after two rounds shows c
    words = {"algorithm": {"name": "scaffold", "step": {"name": "constant", "a": 0.05}, "k0": 1}, "rounds": 2}
    words |= {"X": X[:1], "y": Y[:1], "selection": {"name": "poisson", "share": 0.999}}
    x, c = np.zeros(3), np.zeros(3)
    own = np.zeros(3)
    for _ in range(2):
        gradient = X[0].T @ (X[0] @ x - Y[0]) / 6
        y = x - 0.05 * (gradient - own + c)
        new = own - c + (x - y) / 0.05
        x, c, own = x + (y - x) / 0.999, c + 0.999 * (new - own) / 0.999, new
    np.testing.assert_allclose(run(privacy={"clip": 1e9, "noise_multiplier": 0}, **words).x, x, rtol=1e-9)


@pytest.mark.parametrize(
    ("words", "note"),
    [
        (
            {"stop": {"gradient": 0.0, "patience": 2}},
            "stop.patience looks at the true data: the number of rounds is then not private",
        ),
        ({"stop": {"gradient": 0.0, "gradient_relative": 1e-9}}, "stop.gradient_relative looks at the true data"),
        (
            {"privacy": {"noise_multiplier": 1.0, "delta": 0.05}},
            "privacy.delta = 0.05 is not below 1/m = 0.05: it allows",
        ),
        ({"record": {"best": True}}, "record.best chooses by the true data: /model/best may not be published"),
        (
            {"objective": {"weights": "samples"}},
            'objective.weights = "samples": weights of uploads follow from the data',
        ),
    ],
)
def test_what_the_guarantee_does_not_cover_is_said_in_a_note(words, note):
    notes = run(**{"privacy": {"clip": 0.1, "noise_multiplier": 1.0}} | words).attrs["notes"]
    assert note in notes
    assert "not cover these" not in run(privacy={"noise_multiplier": 1.0}).attrs["notes"]


def test_a_bound_that_follows_a_quantile_keeps_a_size_whose_square_is_a_number():
    # all send 0, which every bound fits: without a limit it would come to 0, and so would the noise
    words = {"clip": 1e-50, "noise_multiplier": 1.0, "quantile": 0.01, "count_noise": 0.6, "clip_rate": 50.0}
    bounds = run(X=np.zeros_like(X), rounds=9, privacy=words).rounds["clip"]
    assert (bounds[:2] >= bounds[1:3]).all()
    assert bounds[-1] == 1e-60


def test_the_default_noise_of_the_count_is_named_with_what_it_follows_from():
    with pytest.raises(UserError, match=r"quantile = 0\.5 needs count_noise above 1, .* of the 20 clients expected$"):
        run(privacy={"noise_multiplier": 2.0, "quantile": 0.5})
