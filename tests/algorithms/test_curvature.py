"""The penalty of FedGiA that follows the curvature of f."""

import numpy as np
import pytest

from mpifed.algorithms.fedgia import FedGiA
from mpifed.algorithms.parts.curvature import begun, followed
from mpifed.federation.participation.selection import All
from mpifed.theory.fedgia import certificate
from tests.helpers.algorithm_runs import M, Run, distance, smoothness

STARTS = [0.002, 0.2, 20.0]


def path_of(f, x, sigma, most, count):
    """States of x⁺ = x − f(x)/σ, f the gradient."""
    path = begun(np.asarray(x, float), sigma, most)
    paths = [path]
    for _ in range(count):
        path = followed(path, path.x - f(path.x) / path.sigma, 0.0)
        paths.append(path)
    return paths


def test_a_step_that_is_far_too_long_is_taken_back():
    """f = ½ 8x², σ = 1/4: 1, −31, and back, with σ = 8."""
    paths = path_of(lambda x: 8 * x, [1.0], 0.25, 100.0, 3)
    assert [path.x.item() for path in paths] == [1.0, -31.0, 1.0, 0.0]
    assert [path.sigma for path in paths] == [0.25, 0.25, 8.0, 8.0]


def test_a_penalty_that_is_too_large_is_halved_until_it_is_twice_the_curvature():
    sigmas = [path.sigma for path in path_of(lambda x: 8 * x, [1.0], 512.0, 1e9, 9)]
    assert sigmas == [512.0, 512.0, 256.0, 128.0, 64.0, 32.0, 16.0, 16.0, 16.0, 16.0]


def test_a_penalty_that_is_slightly_too_small_grows_at_once():
    """c = 8 is not more than 2σ: no step back, and the next σ is 16."""
    paths = path_of(lambda x: 8 * x, [1.0], 4.0, 1e9, 2)
    assert [path.sigma for path in paths] == [4.0, 4.0, 16.0]
    assert paths[2].before == paths[1].x


def test_no_curvature_counts_that_the_clients_cannot_have():
    paths = path_of(lambda x: 8 * x, [1.0], 1.0, 4.0, 2)
    assert paths[2].sigma == 4.0
    assert paths[2].x == paths[2].before == [1.0]


def test_errors_make_the_penalty_larger_and_no_step_back():
    """f = ½ 8x², σ = 1/4; c is 8, give or take 2 · 248/4/32."""
    path = followed(begun(np.ones(1), 0.25, 100.0), np.full(1, -31.0), 248.0)
    assert path.error == 62.0
    assert followed(path, np.full(1, 961.0), 248.0).sigma == 8.0  # c − e = 4.125 is still more than 2σ
    path = followed(begun(np.ones(1), 4.0, 100.0), -np.ones(1), 16.0)
    after = followed(path, np.ones(1), 16.0)
    assert (after.x, after.before, after.sigma) == (1.0, -1.0, 32.0)  # the one nearest to 2(8 + 4)


def test_a_model_that_does_not_move_keeps_its_penalty():
    assert [path.sigma for path in path_of(np.zeros_like, [1.0, 2.0], 3.0, 9.0, 4)] == [3.0] * 5


@pytest.mark.parametrize("slope", [1e60, 1e-200])
def test_huge_and_tiny_steps_leave_numbers(slope):
    for path in path_of(lambda x: slope * x, [1.0], 1.0, slope, 40):
        assert np.isfinite(path.x).all()
        assert 0 < path.sigma < np.inf


def test_t_held_at_the_smallest_start_diverges():
    run = Run(FedGiA(t=STARTS[0], k0=1))
    run.rounds(10)
    assert distance(run) > 1e6


def test_one_step_of_all_clients_does_not_lead_to_no_penalty_at_all():
    """With k0 = 1 and no others uploads say little about gradients; by s alone, σ would fall for ever."""
    run = Run(FedGiA(adaptive=True, k0=1, t=0.2), selection=All())
    for _ in range(100):
        run.rounds(1)
        assert run.server.sigma > 0.01 * (smoothness(run).max() / M)


@pytest.mark.parametrize("t", STARTS)
def test_it_comes_to_a_t_of_its_own_whatever_the_first(t):
    run = Run(FedGiA(adaptive=True, t=t), selection=All())
    found = []
    for _ in range(30):
        run.rounds(1)
        found.append(run.server.sigma / (smoothness(run).max() / M))
    assert 0.05 < np.median(found[15:]) < 1.5
    exponents = np.log2(np.array(found) / t)
    assert np.allclose(exponents, np.rint(exponents), rtol=0, atol=1e-9)  # times powers of two


def test_without_it_nothing_but_the_model_and_the_penalty_are_kept():
    run = Run(FedGiA())
    assert run.server._fields == ("x", "sigma")


def test_no_theorem_is_certified():
    found = certificate(FedGiA(adaptive=True), None)
    why = "those of FedGiA are about one σ for all rounds"
    assert found.holds is None
    assert found.remarks == [f"no theorem is certified for fedgia with algorithm.adaptive = true: {why}"]
