"""FLAME with differential privacy and its noise: what is sent, how large and where, what is spent and refused."""

import math

import numpy as np
import pytest

import mpifed as package
from mpifed.algorithms.parts.noise import GaussianMechanism
from mpifed.core.discrete_noise import MIN_STEPS
from mpifed.core.errors import UserError
from mpifed.federation.participation.selection import All
from mpifed.problems.problem import Problem
from tests.helpers.algorithm_runs import SOURCES, M, N, Run, build, local, same

OPTIONS = {"lam": 5.0, "rho": 0.3, "lr": 0.01, "batch_size": 0, "epochs": 3}
TABLE = {"data": {"clients": 8, "features": 5}, "rounds": 4, "selection": "all", "stop": {"diverged": 0}}


def build_dp(**options):
    return build("flame-dp", OPTIONS | {"noise_seed": 3} | options)


def run(**more):
    algorithm = {"name": "flame-dp", **OPTIONS} | more.pop("algorithm", {})
    return package.run(TABLE | {"algorithm": algorithm} | more)


@pytest.mark.parametrize("seen", ["uploads", "sum"])
def test_only_the_upload_has_noise(seen):
    """After an update π_i = (λ/m)(θ_i − w_i), exactly; the upload is near w, not near z_i."""
    algorithm = build_dp(clip=0.05, noise_multiplier=0.5, seen=seen)
    at_work = Run(algorithm, selection=All())
    for _ in range(4):
        x = at_work.server.x
        at_work.rounds(1)
        state = at_work.states()
        assert np.allclose(state.pi, OPTIONS["lam"] / M * (state.theta - state.w), rtol=1e-12, atol=1e-12)
        z = state.w + state.pi / OPTIONS["rho"]
        far, sent = (np.sqrt(np.vecdot(rows - x, rows - x)) for rows in (z, state.z))
        assert (sent < 0.05 * (1 + 0.5 * 3 * np.sqrt(N))).all()
        assert (far > 0.05).any()
        assert at_work.server.x == pytest.approx(state.z.mean(axis=0), rel=1e-12)


def test_personal_models_feel_the_noise_only_through_the_servers_model():
    """Two runs with other noise have the same θ_i after the first round, and others after the second."""
    one, other = (Run(build_dp(noise_seed=seed), selection=All()) for seed in (1, 2))
    for at_work in (one, other):
        at_work.rounds(1)
    assert same(one.states()[:3], other.states()[:3])
    assert not np.array_equal(one.states().z, other.states().z)
    for at_work in (one, other):
        at_work.rounds(1)
    assert not np.array_equal(one.states().theta, other.states().theta)


@pytest.mark.parametrize(("seen", "share"), [("uploads", 1 / np.sqrt(M)), ("sum", 1 / M)])
def test_the_noise_of_the_model_is_the_mean_of_that_of_all_last_uploads(seen, share):
    """noise_multiplier·C/√m where uploads are seen, and 1/√m of that where only sums are."""
    still = build_dp(clip=1e-9, noise_multiplier=1e9, seen=seen, epochs=1)  # nothing but noise of deviation 1
    models = Run(still, selection=All()).rounds(50)
    steps = np.diff(models, axis=0, prepend=np.zeros((1, N)))
    assert steps.std() == pytest.approx(share, rel=0.12)


def test_noise_of_the_systems_entropy_has_a_guarantee_and_that_of_a_seed_has_none():
    assert run(algorithm={"noise_seed": 3}).attrs["privacy"].startswith("none: ")
    promise = "guaranteed: each upload is ρ-zCDP with ρ = 2 (neighbours: all data of a client replaced)"
    assert run().attrs["privacy"] == promise


def test_the_budget_is_that_of_the_client_with_most_uploads():
    pytest.importorskip("dp_accounting")
    result = run(selection={"name": "uniform", "count": 3}, rounds=6)
    most = [0, *np.cumsum([[i in row for i in range(8)] for row in result.selection[1:]], axis=0).max(axis=1)]
    spent = [build_dp().mechanism().spent_epsilon(int(k), 1e-5) for k in most]
    assert result.rounds["epsilon_accounted"].tolist() == spent
    assert "epsilon_accounted" not in run(algorithm={"noise_multiplier": 0.0}).rounds


def test_sums_under_masks_have_the_bits_of_plain_sums():
    """Uploads lie on a grid that fixed point holds, so nothing is rounded."""
    options = {"seen": "sum", "noise_seed": 5, "noise_multiplier": 4.0}
    plain, masked = (run(algorithm=options, **more) for more in ({}, {"masks": {"sums": "masked"}}))
    assert plain.x.tobytes() == masked.x.tobytes()


def test_a_resumed_run_goes_on_counting(tmp_path):
    pytest.importorskip("dp_accounting")
    whole = run(rounds=6)
    table = TABLE | {"algorithm": {"name": "flame-dp", **OPTIONS}}
    package.run(table, rounds=3, path=tmp_path / "out.h5")
    later = package.resume(tmp_path / "out.h5", rounds=6)
    assert later.rounds["epsilon_accounted"].tolist() == whole.rounds["epsilon_accounted"].tolist()


@pytest.mark.parametrize(
    ("table", "told"),
    [
        (
            {"algorithm": {"seen": "sum"}, "selection": {"name": "uniform", "count": 3}},
            'selection = "uniform" is wrong with 3 clients a round: .*noise of all 8 clients, so it must be "all"',
        ),
        (
            {"algorithm": {"seen": "sum"}, "system": {"dropout": 0.1}},
            "system.dropout = 0.1 is wrong: .* must be absent",
        ),
        ({"algorithm": {"seen": "sum"}, "dtype": "float32"}, 'dtype = "float32" is wrong'),
        (
            {"algorithm": {"seen": "sum", "clip": 1e-7}, "masks": {"sums": "fixed-point"}},
            "^masks.fraction = 32 is wrong: it rounds single uploads, and flame-dp .* so it must be at least 35$",
        ),
    ],
)
def test_what_breaks_the_guarantee_is_refused(table, told):
    with pytest.raises(UserError, match=told):
        run(**table)


DATA = SOURCES["quadratic"].load(0, "float64")


def clients(place=(1, 0)):
    return local(DATA, Problem.build("quadratic", "problem"), place=place)


def uploads(seed=0, size=1.0):
    return size * np.random.default_rng(seed).standard_normal((M, N))


def test_rows_are_shortened_to_the_bound_and_no_more():
    U = uploads()
    U[0] /= 100
    clipped = GaussianMechanism(2.0, 1.0).clip_rows(U)
    size = np.sqrt(np.vecdot(U, U))
    below = 2.0 * (1 - 1e-9)  # by a billionth, so that no rounding leads beyond the bound
    assert np.sqrt(np.vecdot(clipped, clipped)) == pytest.approx(np.minimum(size, below), rel=1e-14)
    assert np.array_equal(clipped[0], U[0])
    assert np.vecdot(clipped, U) == pytest.approx(np.minimum(size, 2.0) * size, rel=1e-8)  # the same direction


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e200])
def test_a_row_without_a_length_is_sent_as_noise_alone(bad):
    U = uploads()
    U[3, 2] = bad
    with np.errstate(over="ignore"):
        assert not GaussianMechanism(1.0, 1.0).clip_rows(U)[3].any()


def grid(noise, parts=1):
    """The step of the grid of uploads."""
    deviation = noise.multiplier * noise.clip / math.sqrt(parts)
    return 2.0 ** math.floor(math.log2(deviation / MIN_STEPS))


@pytest.mark.parametrize("parts", [1, M])
@pytest.mark.parametrize(("clip", "multiplier"), [(0.3, 2.0), (50.0, 0.1), (1e-6, 1.0)])
def test_uploads_lie_on_one_grid_no_farther_from_w_than_the_bound_but_for_the_noise(clip, multiplier, parts):
    """Two clients with other data, the same noise: their uploads are at most 2C apart, counted in whole steps."""
    noise, w = GaussianMechanism(clip, multiplier, seed=5), np.linspace(-1, 2, N)
    step = grid(noise, parts)
    one, other = (noise.upload(clients(), w + uploads(seed, size), w, parts) for seed, size in ((0, 1.0), (1, 1e3)))
    steps = (one - other) / step
    assert np.array_equal(one / step, np.rint(one / step))
    assert (np.sqrt(np.vecdot(steps, steps)) * step <= 2 * clip).all()
    assert (one != other).any()


def test_the_sum_of_uploads_is_exact_in_any_order():
    sent = GaussianMechanism(0.3, 1.0, seed=1).upload(clients(), uploads(), np.linspace(-1, 2, N), M)
    exact = [math.fsum(column) for column in sent.T]
    assert sent.sum(axis=0).tolist() == exact == sent[::-1].cumsum(axis=0)[-1].tolist()


@pytest.mark.parametrize("parts", [1, 16])
def test_the_noise_has_the_deviation_asked_for(parts):
    noise, w = GaussianMechanism(2.0, 3.0), np.zeros(N)
    f = clients()
    drawn = np.array([noise.upload(f, np.zeros((M, N)), w, parts) for _ in range(60)])
    assert drawn.std() == pytest.approx(6.0 / math.sqrt(parts), rel=0.04)
    assert abs(drawn.mean()) < 5 * drawn.std() / math.sqrt(drawn.size)


def test_noise_is_new_in_every_draw_and_that_of_a_seed_in_every_round():
    w, f = np.zeros(N), clients()
    free, tied = GaussianMechanism(1.0, 1.0), GaussianMechanism(1.0, 1.0, seed=7)
    assert (free.upload(f, uploads(), w) != free.upload(f, uploads(), w)).any()
    assert np.array_equal(tied.upload(f, uploads(), w), tied.upload(f, uploads(), w))
    assert (tied.upload(f, uploads(), w) != tied.upload(clients((2, 0)), uploads(), w)).any()


def test_what_is_spent_is_that_of_zero_concentrated_privacy():
    """At most ρ + 2√(ρ ln(1/δ)), Bun and Steinke 2016, and not far below; it grows with releases and falls with δ."""
    pytest.importorskip("dp_accounting")
    for multiplier, releases, delta in ((1.0, 1, 1e-5), (4.0, 15, 1e-5), (0.5, 10, 1e-3), (30.0, 100, 1e-6)):
        noise = GaussianMechanism(0.7, multiplier)
        rho = releases * 2 / multiplier**2
        spent = noise.spent_epsilon(releases, delta)
        bound = rho + 2 * math.sqrt(rho * math.log(1 / delta))
        assert noise.rho() == pytest.approx(2 / multiplier**2, rel=1e-15)
        assert 0.7 * bound < spent < 1.01 * bound
        assert noise.spent_epsilon(releases + 1, delta) > spent > noise.spent_epsilon(releases, 10 * delta)
    assert GaussianMechanism(1.0, 1.0).spent_epsilon(0, 1e-5) == 0.0
