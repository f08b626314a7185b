"""Views: what features change of the clients that methods see, one after the other, and nothing else."""

import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.data.sources.linreg_noniid import LinregNoniid
from mpifed.federation.local_transform import LocalTransform
from mpifed.problems.least_squares import LeastSquares
from tests.helpers.algorithm_runs import Run, build, local

X = np.random.default_rng(0).standard_normal((4, 3))


class Times(LocalTransform):
    """Other factors, and gradients that are moved before."""

    def __init__(self, every, moved):
        self.every = np.asarray(every, float)
        self.moved = moved
        self.by_block = lambda block: self.every[0]

    def factors(self, f):
        return self.every[f.ids]

    def gradient(self, f, before):
        return lambda block, X: self.moved * before(block, X) + self.moved


def clients(*views):
    data = LinregNoniid(clients=4, features=3, least=8, most=8).load(0, "float64")
    return local(data, LeastSquares()).with_transforms(views)


def of(f):
    """All that is linear in f_i."""
    value, grad = f.value_grad(X)
    found = [value, grad, f.value(X), *f.evaluate(X), f.lipschitz()]
    return [*found, f.hess(X), f.packed_hess(X), f.hessian(X)(X)]


def test_a_view_that_says_nothing_changes_nothing():
    plain, viewed = clients(), clients(LocalTransform())
    for one, other in zip([*of(plain), plain.grad(X)], [*of(viewed), viewed.grad(X)], strict=True):
        assert one.tobytes() == other.tobytes()
    assert plain.majorizer_inverse(2.0, 1.0)(X).tobytes() == viewed.majorizer_inverse(2.0, 1.0)(X).tobytes()
    assert all(batch is viewed for _, batch, _ in viewed.steps(3, 0, 0))
    with pytest.raises(UserError, match=r"^clients have neighbours only with a table \[graph\]$"):
        viewed.neighbours  # noqa: B018


def test_factors_multiply_all_that_is_linear_in_f_also_of_some_of_the_clients_and_in_mini_batches():
    plain, viewed = clients(), clients(Times([1, 2, 4, 8], 1), Times([2, 2, 0.5, 2], 1))
    own = np.array([2, 4, 2, 16])
    for one, other in zip(of(plain), of(viewed), strict=True):
        np.testing.assert_allclose(other, own.reshape(-1, *[1] * (one.ndim - 1)) * one, rtol=1e-15)
    assert viewed.take(np.array([3, 1])).factors.tolist() == [16, 4]
    assert [batch.factors.tolist() for _, batch, _ in viewed.steps(2, 0, 3)] == [own.tolist()] * 2
    inverse = plain.majorizer_inverse(6.0, 1.0)(X)
    np.testing.assert_allclose(clients(Times([3] * 4, 1)).majorizer_inverse(2.0, 1.0)(X), inverse, rtol=1e-12)


def test_gradients_pass_the_views_in_the_order_of_the_list():
    G = clients().grad(X)
    for first, second in ((2, 3), (3, 2)):
        found = clients(Times([1] * 4, first), Times([1] * 4, second)).grad(X)
        np.testing.assert_allclose(found, second * (first * G + first) + second, rtol=1e-14)


def test_the_largest_of_a_number_that_is_recorded_is_apart_from_the_sums_and_asked_for_only_where_there_is_one():
    asked = []
    for name, graph in (("dgd", "ring"), ("fedavg", None)):
        run = Run(build(name), graph=graph)
        handle = run.hosts[0].handle
        run.hosts[0].handle = lambda request, handle=handle: asked.append(request.method) or handle(request)
        found = run.fed.evaluate(run.server.x)
        assert ("consensus" in found.sums, [*found.maxima]) == (name == "dgd", ["consensus_max"] * (name == "dgd"))
    assert asked == ["evaluate", "maxima", "evaluate"]
