"""Noise on uploads: its law, scales and guarantee; clipped gradients of local steps, in every method that has them."""

import numpy as np
import pytest
from scipy.stats import kstest

import mpifed
from mpifed import UserError
from mpifed.algorithms import FedAvg, FedEPM, SFedAvg
from mpifed.algorithms.parts import local_solvers
from mpifed.algorithms.parts.noise import draw_laplace, log_signal_to_noise
from mpifed.algorithms.parts.optimizers import SGD, clip_gradients
from mpifed.algorithms.parts.step_sizes import ConstantStep
from mpifed.data.pool import Pool
from mpifed.experiment.rounds import evaluate
from mpifed.problems import LeastSquares, Logistic
from tests.algorithms.test_optimizers import TAKES
from tests.helpers.algorithm_cases import SETTINGS
from tests.helpers.algorithm_runs import M, N, Run, build, gradients, local


def wide(n=20000, c=4, **options):
    """c clients of n features."""
    return local(Pool(np.zeros((4 * c, n)), np.zeros(4 * c), None, np.full(c, 4)), LeastSquares(), **options)


def test_noise_is_laplace_of_the_scale_asked_for():
    scale = np.array([0.01, 1.0, 3.0, 500.0])
    noise = draw_laplace(wide(), scale)
    assert noise.shape == (4, 20000)
    for row, s in zip(noise, scale, strict=True):
        assert kstest(row / s, "laplace").pvalue > 0.01
        assert kstest(row / s * 1.1, "laplace").pvalue < 0.01  # the test would see a scale that is 10 % off
        assert kstest(row / row.std(), "laplace").pvalue < 1e-6  # as released: standard deviation 1 in place of scale 1


def test_the_ratio_of_signal_and_noise():
    W, noise = np.array([[3.0, 4.0], [0.3, 0.4], [1.0, 0.0]]), np.array([[0.0, 0.5], [0.0, 5.0], [0.0, 0.0]])
    assert np.allclose(log_signal_to_noise(W, noise), [1, -1, np.inf])


def uploads(run, rounds):
    """After every round: the ids selected, the model sent to them, their state before and after, their noise (s, n)."""
    for _ in range(rounds):
        x, before = run.server.x, run.states()
        run.rounds(1)
        chosen, after = run.fed.selected, run.states()
        yield chosen, x, before, after, (after.z - after.w)[chosen]


SMALL = {"name": "constant", "a": 0.003}


@pytest.mark.parametrize(
    "options",
    [
        {"noise": "released"},
        {"noise": "matched"},
        {"noise": "matched", "step": {"name": "sqrt-samples", "a": 0.002}},
        {"noise": "released", "average": "new"},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", ["sfedavg", "sfedprox"])
def test_the_noise_of_the_secured_methods_has_its_scale(name, options):
    """ "released": (39) with the constants of FedEPM; "matched": 2γ_i‖∇f_i(x)‖₁/ε with the first step of the round."""
    table = {"k0": 2, "step": SMALL, "epsilon": 1e6} | options
    run = Run(build(name, table))
    found = []
    k = 0
    for chosen, x, _, after, noise in uploads(run, 30):
        if run.algorithm.average == "new":
            x = run.server.x
        g = np.abs(gradients(run, x)).sum(axis=1)[chosen]
        rising = 0.002 * run.data.sizes[chosen] / np.sqrt(2 * 2 + k // 2)
        gamma = 0.003 if table["step"] == SMALL else rising
        k += 2
        scale = 2 * g / (0.05 * 1.001**k) if options["noise"] == "released" else 2 * g * gamma
        found.append(noise / scale[:, None] * 1e6)
        assert np.allclose(after.ratio[chosen], log_signal_to_noise(after.w[chosen], noise))
    values = np.concatenate(found).ravel()
    assert kstest(values, "laplace").pvalue > 0.01
    assert kstest(1.25 * values, "laplace").pvalue < 0.01


@pytest.mark.parametrize("noise", ["released", "matched"])
@pytest.mark.parametrize("step_scale", ["samples", "one"])
def test_the_noise_of_fedepm_is_the_unit_noise_of_its_stream_times_its_scale(step_scale, noise):
    """To rounding, with w_i^k of the last local iteration in μ_i."""
    rng = np.random.default_rng(1)
    data = Pool(rng.standard_normal((60, 8)), rng.standard_normal(60), None, np.array([9, 10, 11, 12, 9, 9]))
    f, x = local(data, LeastSquares()), rng.standard_normal(8)
    algorithm = FedEPM(k0=3, mu0=0.7, alpha=1.05, c=0.4, epsilon=0.3, noise=noise, step_scale=step_scale)
    client = algorithm.init_client(f)._replace(w=rng.standard_normal((6, 8)))
    new, z = algorithm.update(f, client, x, 40, 0.1, 0.01)  # after 40 iterations, with η = 0.1 and λ = 0.01
    w = client.w
    d = data.sizes if step_scale == "samples" else np.ones(6)
    g = f.grad(x)
    for j in range(3):
        mu = 0.7 * (1 + 0.4 * np.sum((w - x) ** 2, axis=1)) * 1.05 ** (40 + j + 1)
        v = (mu / d)[:, None] * (w - x) - g
        w = x + np.sign(v) * np.maximum(abs(v) - 0.01, 0) / (0.1 + mu / d)[:, None]
    sensitivity = 2 * np.abs(g).sum(axis=1) / mu * (d if noise == "matched" else 1)
    unit = draw_laplace(local(data, LeastSquares()), np.ones(6))
    assert np.allclose(z - new.w, sensitivity[:, None] / 0.3 * unit, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize("k0", [1, 2])
def test_the_noise_of_the_secured_methods_knows_the_iterate_before_the_last_step(k0):
    """(39): μ_i holds c‖w_i^k − x‖², w_i^k of the last iteration: the old model only where that is the first one."""
    rng = np.random.default_rng(0)
    data = Pool(rng.standard_normal((400, 50)), np.full(400, 1.0), None, np.full(20, 20))
    f = local(data, LeastSquares())
    algorithm = SFedAvg(k0=k0, step=ConstantStep(a=1e-4))
    x = np.zeros(50)
    client = algorithm.init_client(f)._replace(w=np.full((20, 50), 1e4))  # c‖w − x‖² = 50
    new, z = algorithm.update(f, client, x, 0)
    growth = 1 + 1e-8 * (50 * 1e8 if k0 == 1 else 0)
    scale = 2 * np.abs(f.grad(x)).sum(axis=1) / (0.1 * 0.05 * growth * 1.001**k0)
    unit = draw_laplace(local(data, LeastSquares()), np.ones(20))
    assert np.allclose(z - new.w, scale[:, None] * unit, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", ["fedepm", "sfedavg", "sfedprox"])
def test_the_first_upload_is_noise_of_standard_deviation_twenty(name):
    """z_i⁰ = w_i⁰ + noise of standard deviation 1/μ_0 = 20 (errata), Laplace."""
    found = []
    for seed in range(40):
        run = Run(build(name), seed=seed)
        found.append(run.states().z)
        if name != "fedepm":
            assert np.allclose(run.server.x, found[-1].mean(axis=0))
    values = np.concatenate(found).ravel()
    assert kstest(values / 20 * 2**0.5, "laplace").pvalue > 0.01
    assert np.isclose(values.std(), 20, rtol=0.05)


def neighbours(pairs, d, n, rng, binary):
    """Samples of ``pairs`` clients, then of the same clients with one sample replaced by any other or its opposite."""
    A = rng.standard_normal((pairs, d, n)) * np.exp(rng.uniform(-2, 2, (pairs, 1, 1)))
    b = rng.integers(0, 2, (pairs, d)).astype(float) if binary else 3 * rng.standard_normal((pairs, d))
    other, c = A.copy(), b.copy()
    at = np.arange(pairs), rng.integers(0, d, pairs)
    other[at] = np.where(rng.random((pairs, 1)) < 0.5, -A[at], 10 * rng.standard_normal((pairs, n)))
    c[at] = 1 - b[at] if binary else 10 * rng.standard_normal(pairs)
    X, y = np.concatenate([A, other]).reshape(-1, n), np.concatenate([b, c]).ravel()
    return Pool(X, y, None, np.full(2 * pairs, d))


@pytest.mark.parametrize("k0", [1, pytest.param(2, marks=pytest.mark.slow), 5])
@pytest.mark.parametrize("step_scale", ["samples", "one"])
@pytest.mark.parametrize("problem", [LeastSquares(), Logistic(mu=0.5), Logistic(mu=0.1, regulariser="whole")], ids=repr)
def test_reach_bounds_how_far_one_sample_moves_a_client(problem, step_scale, k0):
    """‖w_i − w_i'‖₁ <= reach over several rounds, for the same models x: 20 pairs, 5 random trials."""
    rng, nearest = np.random.default_rng([k0, len(step_scale)]), 0.0
    for _ in range(5):
        pairs = 20
        d = int(rng.integers(1, 9))
        n = int(rng.integers(1, 6))
        algorithm = FedEPM(
            k0=k0,
            noise="clipped",
            clip=float(rng.choice([0.1, 1.0, 10.0])),
            c=0.5,
            step_scale=step_scale,
            mu0=float(rng.choice([0.05, 1.0, 30.0])),
            alpha=float(rng.choice([1.0, 1.001, 1.3])),
        )
        eta, lam = (float(v) for v in rng.choice([1e-5, 0.01, 1.0], 2))
        f = local(neighbours(pairs, d, n, rng, not isinstance(problem, LeastSquares)), problem)
        client = algorithm.init_client(f)
        for round in range(5):
            x = rng.standard_normal(n) * rng.choice([0.1, 1.0, 10.0])
            new, _ = algorithm.update(f, client, x, k0 * round, eta, lam)
            trains = np.tile(rng.random(pairs) < 0.7, 2)  # both of a pair or none
            pairs_of = zip(client, new, strict=True)
            client = client._make(np.where(trains if old.ndim == 1 else trains[:, None], v, old) for old, v in pairs_of)
            moved = np.abs(client.w[:pairs] - client.w[pairs:]).sum(axis=1)
            assert (moved <= client.reach[:pairs] * (1 + 1e-9) + 1e-12).all()
            assert np.array_equal(client.reach[:pairs], client.reach[pairs:])  # it tells nothing of the data
            nearest = max(nearest, (moved / np.maximum(client.reach[:pairs], 1e-300)).max())
    assert 0.5 < nearest <= 1 + 1e-9  # and it is no idle bound


def test_reach_is_its_recursion():
    """δ ← (μ δ + 2 clip/d)/(η + μ) at every local iteration, μ the step's; kept by those who do not train."""
    algorithm = FedEPM(noise="clipped", clip=3.0, k0=3, mu0=20.0, alpha=1.1, eta=0.5, lam=0.1)
    run = Run(algorithm)
    reach = np.zeros(M)
    k = 0
    for _ in range(5):
        run.rounds(1)
        for i in run.fed.selected:
            d = run.data.sizes[i]
            for j in range(3):
                mu = 20.0 * 1.1 ** (k + j + 1) / d
                reach[i] = (mu * reach[i] + 2 * 3.0 / d) / (0.5 + mu)
        k += 3
        assert np.allclose(run.states().reach, reach, rtol=1e-12)


def test_clipping_leaves_out_what_would_make_steps_depend_on_data():
    """c counts for nothing: μ_i must not depend on w_i."""
    one, other = (Run(FedEPM(noise="clipped", noise_seed=1, clip=3.0, mu0=20.0, c=c)) for c in (0.0, 100.0))
    assert one.rounds(4).tobytes() == other.rounds(4).tobytes()


def test_a_clipped_gradient_is_what_clients_step_with():
    run = Run(FedEPM(noise="clipped", clip=0.5, k0=1, mu0=30.0, step_scale="one", lam=1e-3, eta=2e-3))
    for chosen, x, before, after, _ in uploads(run, 3):
        for i in chosen:
            g = np.zeros(N)
            for a, b in zip(*run.samples()[i], strict=True):
                s = (a @ x - b) * a
                g += s * min(1, 0.5 / np.abs(s).sum()) / run.data.sizes[i]
            mu = 30.0 * 1.001**run.round
            v = mu * (before.w[i] - x) - g
            assert np.allclose(after.w[i], x + np.sign(v) * np.maximum(abs(v) - 1e-3, 0) / (2e-3 + mu), rtol=1e-10)


def test_the_probability_of_any_upload_changes_by_at_most_e_to_the_epsilon():
    """Laplace noise of scale reach/ε: the densities of z_i for neighbouring data, at their own uploads."""
    rng, epsilon = np.random.default_rng(3), 0.7
    algorithm = FedEPM(k0=2, noise="clipped", noise_seed=1, clip=1.0, mu0=1.0, epsilon=epsilon)
    f = local(neighbours(30, 4, 3, rng, True), Logistic(mu=0.5))
    client, z = algorithm.update(f, algorithm.init_client(f), rng.standard_normal(3), 0, 0.01, 0.01)
    scale = client.reach[:30] / epsilon
    ratio = (np.abs(z[:30] - client.w[30:]) - np.abs(z[:30] - client.w[:30])).sum(axis=1) / scale
    assert (np.abs(ratio) <= epsilon * (1 + 1e-9)).all()
    assert np.abs(ratio).max() > 0.3 * epsilon


@pytest.mark.parametrize(
    ("name", "options"),
    [("fedepm", {}), ("fedepm", {"noise": "clipped"}), ("sfedavg", {}), ("sfedprox", {"noise": "matched"})],
    ids=str,
)
def test_the_record_tells_epsilon_and_the_smallest_ratio(name, options):
    if options.get("noise") == "clipped":
        pytest.importorskip("dp_accounting")
    small = {"step": SMALL} if name != "fedepm" else {}
    run = Run(build(name, {"epsilon": 0.3, **options, **small}))
    row = evaluate(run.algorithm, run.fed, run.server)
    assert row["snr"] == np.inf
    assert row["epsilon"] == 0
    last = np.full(M, np.inf)
    for chosen, _, _, after, noise in uploads(run, 6):
        last[chosen] = np.log10(np.linalg.norm(after.w[chosen], axis=1) / np.linalg.norm(noise, axis=1))
        row = evaluate(run.algorithm, run.fed, run.server)
        assert np.isclose(row["snr"], last.min(), rtol=1e-9)
        assert np.isclose(row["epsilon"], 0.3 * run.fed.times_selected.max(), rtol=1e-12)
        assert ("epsilon_accounted" in row) == (options.get("noise") == "clipped")
        assert row.get("epsilon_accounted", 0) <= row["epsilon"]
    assert not {"snr", "epsilon"} & Run(build(name, {"noise": "none"})).row().keys()


def test_a_client_is_clipped_by_its_own_norm_alone():
    g = np.random.default_rng(1).standard_normal((5, 40)) * np.array([[0.01], [1], [5], [0], [100]])
    together = clip_gradients(g, 2.0)
    assert together.tobytes() == np.concatenate([clip_gradients(g[i : i + 1].copy(), 2.0) for i in range(5)]).tobytes()
    assert np.array_equal(together[[0, 3]], g[[0, 3]])
    assert np.allclose(np.linalg.norm(together[[1, 2, 4]], axis=1), 2.0, rtol=1e-6)
    assert clip_gradients(g.astype(np.float32), 2.0).dtype == np.float32


@pytest.mark.parametrize("name", [name for name in TAKES if name != "fednova"])
def test_every_method_with_an_optimizer_clips(name):
    both = ({"name": "sgd", "clip": clip} for clip in (0.0, 1e-3))
    plain, cut = (Run(build(name, SETTINGS.get(name, {}) | {"optimizer": one})).rounds(2)[-1] for one in both)
    assert not np.array_equal(plain, cut)


@pytest.mark.parametrize("kind", [local_solvers.SGDSolver, local_solvers.AdamSolver])
def test_stochastic_solvers_of_dual_methods_clip_too(kind):
    assert kind(clip=0.3).rule().clip == 0.3


def test_a_bound_that_no_gradient_reaches_changes_no_bit():
    some, none = (Run(FedAvg(optimizer=SGD(clip=clip))).rounds(3)[-1] for clip in (1e9, 0.0))
    assert some.tobytes() == none.tobytes()


def test_fednova_refuses_it_and_no_theorem_covers_it():
    with pytest.raises(UserError, match=r"^algorithm: optimizer = sgd is wrong: fednova .*, and without clip$"):
        build("fednova", {"optimizer": {"name": "sgd", "clip": 1.0}})
    study = {"algorithm": {"name": "fedavg", "k0": 1, "step": 0.01, "certify": True, "optimizer": {"clip": 1.0}}}
    assert not mpifed.run(study, rounds=2, selection="all", progress=False).certificate.bounds
