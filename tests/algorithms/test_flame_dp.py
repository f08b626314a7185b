"""FLAME with differential privacy: what is sent, what stays at home, what is spent, and what is refused."""

import numpy as np
import pytest

import mpifed as package
from mpifed.core.errors import UserError
from mpifed.federation.participation.selection import All
from tests.helpers.algorithm_runs import M, N, Run, build, same

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


def test_a_narrow_bound_has_another_limit_where_the_clipped_differences_cancel():
    """A Huber mean of the z_i in the place of their mean."""
    target = Run(build("flame", OPTIONS), selection=All()).rounds(400)[-1]
    for clip in (0.05, 0.1):
        slow = Run(build_dp(clip=clip, noise_multiplier=0.0), selection=All())
        models = slow.rounds(500)
        state, x = slow.states(), models[-2]
        u = state.w + state.pi / OPTIONS["rho"] - x
        size = np.sqrt(np.vecdot(u, u))
        assert size.max() > 2 * clip
        assert np.linalg.norm((u * np.minimum(1, clip / size)[:, None]).mean(axis=0)) < 1e-3 * clip
        assert np.linalg.norm(u.mean(axis=0)) > 0.1 * clip
        assert 0.01 < np.linalg.norm(models[-1] - target) / np.linalg.norm(target) < 0.3
        assert np.linalg.norm(models[9]) <= 10 * clip


@pytest.mark.parametrize(("seen", "share"), [("uploads", 1 / np.sqrt(M)), ("sum", 1 / M)])
def test_the_noise_of_the_model_is_the_mean_of_that_of_all_last_uploads(seen, share):
    """noise_multiplier·C/√m where uploads are seen, and 1/√m of that where only sums are."""
    still = build_dp(clip=1e-9, noise_multiplier=1e9, seen=seen)  # nothing but noise of deviation 1
    models = Run(still, selection=All()).rounds(50)
    steps = np.diff(models, axis=0, prepend=np.zeros((1, N)))
    assert steps.std() == pytest.approx(share, rel=0.12)


def test_noise_of_the_systems_entropy_is_not_repeated_and_that_of_a_seed_is():
    free = [run().x for _ in range(2)]
    tied = [run(algorithm={"noise_seed": 3}) for _ in range(2)]
    assert (free[0] != free[1]).any()
    assert tied[0].x.tobytes() == tied[1].x.tobytes()
    assert tied[0].attrs["privacy"].startswith("none: ")
    promise = "guaranteed: each upload is ρ-zCDP with ρ = 2 (neighbours: all data of a client replaced)"
    assert run().attrs["privacy"] == promise


def test_the_budget_is_that_of_the_client_with_most_uploads():
    pytest.importorskip("dp_accounting")
    result = run(selection={"name": "uniform", "count": 3}, rounds=6)
    most = [0, *np.cumsum([[i in row for i in range(8)] for row in result.selection[1:]], axis=0).max(axis=1)]
    spent = [build_dp().mechanism().spent(int(k), 1e-5) for k in most]
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
        ({"selection": {"name": "biased", "share": 0.5}}, "biased.* asks clients for exact numbers"),
        (
            {"algorithm": {"seen": "sum"}, "selection": {"name": "uniform", "count": 3}},
            'selection = "uniform" is wrong with 3 clients a round: .*noise of all 8 clients, so it must be "all"',
        ),
        (
            {"algorithm": {"seen": "sum"}, "system": {"dropout": 0.1}},
            "system.dropout = 0.1 is wrong: .* must be absent",
        ),
        ({"algorithm": {"seen": "sum"}, "dtype": "float32"}, 'dtype = "float32" is wrong'),
    ],
)
def test_what_breaks_the_guarantee_is_refused(table, told):
    with pytest.raises(UserError, match=told):
        run(**table)
