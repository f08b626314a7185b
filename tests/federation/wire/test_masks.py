"""The table [masks]: what secure aggregation costs, what it changes, and what it is refused with."""

from __future__ import annotations

import numpy as np
import pytest

import mpifed as package
from mpifed.core.errors import UserError
from mpifed.federation.wire.masks import Masks
from tests.helpers.commands import mpifed

TABLE = {"data": {"clients": 10, "features": 6}, "rounds": 4, "stop": {"diverged": 0}}
BYTES = ("bytes_up", "bytes_down")
MESSAGES = ("exchanges", "uploads", "downloads")


def run(algorithm="fedavg", **more):
    return package.run(TABLE | {"algorithm": algorithm} | more)


@pytest.mark.parametrize(("s", "u"), [(2, 2), (5, 5), (50, 41)])
def test_seeds_cost_what_the_paper_counts(s, u):
    """Each client that replies: 2s a_K + (5s − 4) a_S + N·width, Bonawitz et al., section 7.1, up and down together."""
    K, S, N = 33, 48, 1001
    up, down = Masks(key_bytes=K, share_bytes=S, bits=24).charged(s, u, N)
    replies = u * (2 * s * K + (5 * s - 4) * S + 3 * N)
    gone = (s - u) * (2 * s * K + 4 * (s - 1) * S)
    assert up + down == replies + gone
    assert down == s * (s - 1) * 2 * (K + S)


def test_vectors_cost_one_a_pair_and_one_for_each_that_is_missed():
    """4 clients, 6 pairs; with one of them gone, the other 3 send the masks they had in common with it."""
    masks = Masks(kind="vectors", bits=20)
    assert masks.charged(4, 4, 10) == (6 * 25 + 4 * 25, 6 * 25)
    assert masks.charged(4, 3, 10) == (6 * 25 + 3 * 25 + 3 * 25, 6 * 25)


@pytest.mark.parametrize("algorithm", ["fedavg", "fedadmm", "scaffold", "fedgia"])
@pytest.mark.parametrize("kind", ["seeds", "vectors"])
def test_a_run_is_charged_and_not_changed(algorithm, kind):
    plain, charged = run(algorithm), run(algorithm, masks={"kind": kind})
    assert charged.x.tobytes() == plain.x.tobytes()
    assert all(np.array_equal(charged.rounds[name], plain.rounds[name]) for name in MESSAGES)
    clients = 10 if algorithm == "fedgia" else 5
    numbers = 12 if algorithm == "scaffold" else 6
    up, down = Masks(kind=kind).charged(clients, clients, numbers)
    rounds = np.arange(5)
    assert charged.rounds["bytes_up"].tolist() == (up * rounds).tolist()
    assert charged.rounds["bytes_down"].tolist() == (plain.rounds["bytes_down"] + down * rounds).tolist()


@pytest.mark.parametrize(
    "algorithm",
    [
        "fedavg",
        {"name": "fedopt", "server": "fedexp"},
        "fedprox",
        "fedadmm",
        "scaffold",
        "fedgia",
        "fedpd",
        "flame",
        "pfedme",
    ],
    ids=str,
)
def test_masks_cancel_to_the_bit_and_rounding_is_small(algorithm):
    exact, fixed, masked = (run(algorithm, masks={"sums": sums}) for sums in ("float", "fixed-point", "masked"))
    assert masked.x.tobytes() == fixed.x.tobytes()
    for name in ("objective", "grad_norm_sq", *BYTES):
        assert masked.rounds[name].tobytes() == fixed.rounds[name].tobytes()
    assert 0 < np.abs(fixed.x - exact.x).max() < 1e-7 * max(1, np.abs(exact.x).max())


@pytest.mark.parametrize("algorithm", ["feddcd", "accfeddcd"])
def test_so_do_those_of_dual_methods(algorithm):
    more = {"problem": "logistic", "data": {"name": "gaussian", "clients": 7, "samples": 9, "features": 4}}
    fixed, masked = (run(algorithm, **more, masks={"sums": sums}) for sums in ("fixed-point", "masked"))
    assert masked.x.tobytes() == fixed.x.tobytes()


@pytest.mark.parametrize("algorithm", ["fedavg", "fedadmm", "flame"])
def test_also_where_clients_drop_out_after_they_agreed(algorithm):
    system = {"dropout": 0.4, "least": 4}
    fixed, masked = (
        run(algorithm, rounds=8, system=system, masks={"sums": sums}) for sums in ("fixed-point", "masked")
    )
    gone = masked.rounds["dropped"]
    assert gone.sum() > 0
    assert masked.x.tobytes() == fixed.x.tobytes()
    charged = [Masks().charged(5, 5 - int(k), 6)[0] for k in gone[1:]]
    assert np.diff(masked.rounds["bytes_up"]).tolist() == charged


def test_a_resumed_run_goes_on_with_the_same_bits(tmp_path):
    more = {"algorithm": "flame", "masks": {"sums": "masked"}}
    whole = package.run(TABLE | more, rounds=6)
    package.run(TABLE | more, rounds=3, path=tmp_path / "out.h5")
    assert package.resume(tmp_path / "out.h5", rounds=6).x.tobytes() == whole.x.tobytes()


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ({"algorithm": "fedepm"}, "masks cannot be used with fedepm: .*uploads of first one by one"),
        ({"algorithm": {"name": "sfedavg", "average": "new"}}, "masks cannot be used with sfedavg: .*one by one"),
        ({"selection": "biased"}, "masks cannot be used with selection.name = \"?'?biased.*scores one by one"),
        ({"selection": {"name": "uniform", "count": 1}}, "takes 1 client a round, but masks need at least 2"),
        (
            {"system": {"dropout": 0.2, "least": 3}},
            r"system.least = 3 is wrong: with masks.threshold = 0.67 .* 5 .* only where 4 reply, so .* at least 4",
        ),
        ({"masks": {"bits": 65}}, "masks.bits = 65 is wrong"),
        ({"masks": {"kind": "none"}}, 'masks.kind = "none" is wrong: it must be "seeds" or "vectors"'),
    ],
)
def test_what_masks_do_not_go_with_is_refused(table, told):
    with pytest.raises(UserError, match=told):
        package.run(TABLE | {"algorithm": "fedavg", "masks": {}} | table)


class Chatty(package.Algorithm, tag="chatty"):
    """A method whose server reads every upload."""

    def join(self, f):
        return package.algorithms.FedAvg().join(f)

    def start(self, fed):
        return package.algorithms.FedAvg().start(fed)

    def round(self, fed, server):
        return server._replace(x=fed.call(self.update, server.x).mean(axis=0))

    def update(self, f, client, x):
        return client, x - 0.1 * f.grad(x)


def test_so_is_a_method_of_your_own_that_reads_single_uploads():
    assert package.run(TABLE, algorithm=Chatty()).cr == 4
    with pytest.raises(
        UserError, match=r"masks cannot be used with .*Chatty: its server needs the uploads of update one"
    ):
        package.run(TABLE, algorithm=Chatty(), masks={})


def test_the_table_describes_itself():
    told = mpifed("describe", "masks").out
    assert all(key in told for key in (*Masks.__struct_fields__, "Bonawitz", "up    s(2K + 2(s−1)S) + u(b + sS)"))
