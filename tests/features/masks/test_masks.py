"""The table [masks]: what secure aggregation costs and what it changes; numbers in fixed point."""

import numpy as np
import pytest

import mpifed as package
from mpifed.core.errors import UserError
from mpifed.features.masks.masks import FixedPoint, Masks

TABLE = {"data": {"clients": 10, "features": 6}, "rounds": 4, "stop": {"diverged": 0}}
DUAL = {"problem": "logistic", "data": {"name": "gaussian", "clients": 7, "samples": 9, "features": 4}}


def run(algorithm="fedavg", **more):
    return package.run(TABLE | {"algorithm": algorithm} | more)


@pytest.mark.parametrize(("s", "u"), [(2, 2), (5, 5), (50, 41)])
def test_seeds_cost_what_the_paper_counts_and_vectors_one_a_pair_and_one_for_each_that_is_missed(s, u):
    """Each client that replies: 2s a_K + (5s − 4) a_S + N·width, Bonawitz et al., section 7.1, up and down together."""
    K, S, N = 33, 48, 1001
    up, down = Masks(key_bytes=K, share_bytes=S, bits=24).message_bytes(s, u, N)
    replies = u * (2 * s * K + (5 * s - 4) * S + 3 * N)
    gone = (s - u) * (2 * s * K + 4 * (s - 1) * S)
    assert up + down == replies + gone
    assert down == s * (s - 1) * 2 * (K + S)
    pairs = s * (s - 1) // 2  # with one client gone, all the others send the mask that they had in common with it
    assert Masks(kind="vectors", bits=20).message_bytes(s, u, 10) == ((pairs + u + u * (s - u)) * 25, pairs * 25)


@pytest.mark.parametrize(("algorithm", "kind"), [("fedavg", "seeds"), ("scaffold", "seeds"), ("fedgia", "vectors")])
def test_a_run_is_charged_and_not_changed(algorithm, kind):
    plain, charged = run(algorithm), run(algorithm, masks={"kind": kind})
    assert charged.x.tobytes() == plain.x.tobytes()
    for name in ("exchanges", "uploads", "downloads"):
        assert np.array_equal(charged.rounds[name], plain.rounds[name])
    clients = 10 if algorithm == "fedgia" else 5
    up, down = Masks(kind=kind).message_bytes(clients, clients, 12 if algorithm == "scaffold" else 6)
    rounds = np.arange(5)
    assert charged.rounds["bytes_up"].tolist() == (up * rounds).tolist()
    assert charged.rounds["bytes_down"].tolist() == (plain.rounds["bytes_down"] + down * rounds).tolist()


OTHERS = ["fedadmm", "feddcd", "fedprox", "scaffold", "fedgia", "fedpd", "pfedme", "accfeddcd"]
OTHERS += [{"name": "fedopt", "server": "fedexp"}]


@pytest.mark.parametrize(
    "algorithm", ["fedavg", "flame", *[pytest.param(one, marks=pytest.mark.slow) for one in OTHERS]], ids=str
)
def test_masks_cancel_to_the_bit_and_rounding_is_small(algorithm):
    more = DUAL if "dcd" in algorithm else {}
    exact, fixed, masked = (run(algorithm, **more, masks={"sums": sums}) for sums in ("float", "fixed-point", "masked"))
    assert masked.x.tobytes() == fixed.x.tobytes()
    for name in ("objective", "grad_norm_sq", "bytes_up", "bytes_down"):
        assert masked.rounds[name].tobytes() == fixed.rounds[name].tobytes()
    assert 0 < np.abs(fixed.x - exact.x).max() < 1e-7 * max(1, np.abs(exact.x).max())


@pytest.mark.parametrize("algorithm", ["fedadmm", pytest.param("flame", marks=pytest.mark.slow)])
def test_also_where_clients_drop_out_after_they_agreed(algorithm):
    system = {"dropout": 0.4, "least": 4}
    fixed, masked = (run(algorithm, rounds=8, system=system, masks={"sums": one}) for one in ("fixed-point", "masked"))
    gone = masked.rounds["dropped"]
    assert gone.sum() > 0
    assert masked.x.tobytes() == fixed.x.tobytes()
    charged = [Masks().message_bytes(5, 5 - int(k), 6)[0] for k in gone[1:]]
    assert np.diff(masked.rounds["bytes_up"]).tolist() == charged


class Chatty(package.algorithms.FedAvg, tag="chatty"):
    """A method whose server reads every upload."""

    def round(self, fed, server):
        return server._replace(x=fed.call(self.update, server.x, 0).mean(axis=0))


def test_a_method_of_your_own_that_reads_single_uploads_is_refused():
    assert package.run(TABLE, algorithm=Chatty()).cr == 4
    told = r"masks cannot be used with .*Chatty: its server needs the uploads of update one by one"
    with pytest.raises(UserError, match=told):
        package.run(TABLE, algorithm=Chatty(), masks={})


@pytest.mark.parametrize("fixed", [FixedPoint(64, 32), FixedPoint(64, 50), FixedPoint(32, 12), FixedPoint(17, 3)])
def test_in_fixed_point_numbers_are_the_nearest_multiples_and_sums_are_exact_in_any_order_up_to_the_limit(fixed):
    """Whole multiples, added as Python's integers, which have no largest one."""
    X = np.random.default_rng(0).uniform(-1, 1, (40, 5)) * fixed.limit(2)
    back = fixed.decode(fixed.encode(X))
    assert np.abs(back - X).max() <= 2.0 ** -(fixed.fraction + 1)
    assert np.array_equal(fixed.decode(fixed.encode(back)), back)
    assert (fixed.encode(X) < 2**fixed.bits - 1).all() or fixed.bits == 64
    edge, rng = fixed.limit(7), np.random.default_rng(1)
    X = np.concatenate([np.full((7, 1), edge), np.full((7, 1), -edge), rng.uniform(-edge, edge, (7, 9))], 1)
    exact = [sum(int(q) for q in column) for column in np.rint(np.ldexp(X, fixed.fraction)).T]
    for order in (np.arange(7), np.arange(7)[::-1], rng.permutation(7)):
        total = fixed.encode(X)[order].sum(axis=0, dtype=np.uint64)
        assert fixed.decode(total).tolist() == [float(q) * 2.0**-fixed.fraction for q in exact]
    for value in (1e-9, 0.7, 3.0, 4e4):
        most = fixed.maximum_fraction(value, 10)
        assert fixed._replace(fraction=most).limit(10) >= value > fixed._replace(fraction=most + 1).limit(10)
