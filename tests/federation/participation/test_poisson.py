"""Clients drawn one by one: the law of their number, rounds in which nobody is drawn, and what goes on after them."""

import math
from pathlib import Path

import numpy as np
import pytest

import mpifed
from mpifed.core.toml import flatten
from mpifed.federation.participation.selection import PoissonSelection
from tests.federation.participation.test_selection import drawn, even
from tests.helpers.commands import mpifed as command

M, N, K0, Q = 5, 4, 3, 0.2
STUDY = {
    "data": {"name": "gaussian", "clients": M, "samples": 8, "features": N},
    "problem": "least-squares",
    "selection": {"name": "poisson", "share": Q},
    "rounds": 12,
    "seed": 2,
}
METHODS = ["fedavg", "scaffold", "fedopt", "feddyn"]
VECTORS = {"scaffold": 2}  # down and up, where it is not one
LEDGER = ("exchanges", "uploads", "downloads", "bytes_up", "bytes_down", "bits_up", "bits_down")
PLUGIN = """
import numpy as np

import mpifed
from mpifed.federation.request import ReplyLayout


class Filled(mpifed.extend.Transform):
    \"\"\"The server adds the round to the sum of uploads, which may be of nobody, and divides by a fixed number.\"\"\"

    supports = mpifed.extend.Supports.EVERYTHING

    def __init__(self, setup, vectors):
        self.setup, self.vectors = setup, vectors

    def decode(self, request, reply):
        if self.name not in request.transforms:
            return
        n = len(self.setup.start)
        if not request.count(self.setup.m):
            assert (reply.rows.shape, reply.layout) == ((0,), None)
            reply.rows = np.zeros(self.vectors * n)
            reply.layout = ReplyLayout(((n,),) * self.vectors)
        reply.rows = reply.rows + request.key[0]
        reply.count = 2


class PlaysAll(mpifed.extend.Plugin):
    def transforms(self, setup, fed):
        if fed is not None:
            fed.plays_empty_rounds = True
        return [Filled(setup, setup.algorithm.upload.vectors)]
"""


def run(algorithm="fedavg", **settings):
    return mpifed.run(STUDY, settings, algorithm=algorithm, progress=False)


def words(algorithm, **settings):
    return [f"{key}={value}" for key, value in flatten(STUDY | {"algorithm": algorithm} | settings).items()]


def sets(result):
    return [result.selected(round) for round in range(result.cr + 1)]


def empty(result):
    """The rounds in which nobody was drawn, at least one."""
    rounds = [round for round, ids in enumerate(sets(result)) if round and not len(ids)]
    assert rounds
    return rounds


def test_numbers_of_clients_have_the_binomial_law_and_clients_are_drawn_independently():
    m, rounds, q = 20, 4000, 0.3
    picks = np.zeros((rounds, m))
    for row, ids in zip(picks, drawn(PoissonSelection(share=q), 1, m, rounds), strict=True):
        row[ids] = 1
    counts, variance = picks.sum(axis=1), m * q * (1 - q)
    assert abs(counts.mean() - m * q) <= 5 * math.sqrt(variance / rounds)
    # the fourth central moment of a binomial number is 3 V² + V (1 − 6 q (1 − q))
    fourth = 2 * variance**2 + variance * (1 - 6 * q * (1 - q))
    assert abs(counts.var() - variance) <= 5 * math.sqrt(fourth / rounds)
    assert even(picks.sum(axis=0), rounds, q)
    together = picks.T @ picks
    assert even(together[~np.eye(m, dtype=bool)], rounds, q * q)
    assert even((picks[1:] * picks[:-1]).sum(axis=0), rounds - 1, q * q)  # and rounds do not know each other


def test_a_selector_says_its_probability_and_its_expected_number_rounded_up():
    selector = PoissonSelection(share=0.07).selector(0, 100, 1)
    assert (selector.size, selector.probability, selector.varies) == (7, 0.07, True)
    assert PoissonSelection(share=1e-9).selector(0, 100, 1).size == 1
    everyone = PoissonSelection(share=1.0).selector(0, 100, 1)
    assert (everyone.size, everyone.select(1, 0), everyone.varies) == (100, None, False)


def test_sums_are_promised_only_where_everybody_is_drawn():
    sums = mpifed.extend.Supports.SUMS
    for share, is_promised in ((0.99, False), (1.0, True)):  # ⌈0.99 · 5⌉ is 5, and rounds may still have fewer
        assert (
            bool(PoissonSelection(share=share).selector(0, M, 1).supported_promises(M).supports & sums) == is_promised
        )


def test_of_absent_clients_nobody_is_drawn_and_of_the_others_those_that_would_be_if_all_were_there():
    selector = PoissonSelection(share=0.4).selector(3, 30, 1)
    present = np.arange(0, 30, 2)
    for round in range(1, 20):
        ids = selector.among(3, selector.size, round, 0, present)
        assert ids.tolist() == [i for i in selector.select(round, 0) if i % 2 == 0]


@pytest.mark.parametrize("algorithm", METHODS)
def test_an_empty_round_changes_nothing_and_is_charged_nothing(algorithm):
    result = run(algorithm)
    rounds = empty(result)
    for round in rounds:
        assert all(result.rounds[name][round] == result.rounds[name][round - 1] for name in (*LEDGER, "objective"))
        assert result.rounds["compute_seconds"][round] == result.rounds["client_seconds"][round] == 0
        assert result.selected(round).shape == (0,)
    assert all(result.rounds["objective"][k] != result.rounds["objective"][k - 1] for k in {1, 12} - {*rounds})
    others = np.array([len(ids) for ids in sets(result)])
    size = 8 * N * VECTORS.get(algorithm, 1)
    assert result.rounds["exchanges"].tolist() == np.cumsum(others > 0).tolist()
    assert result.rounds["uploads"].tolist() == result.rounds["downloads"].tolist() == np.cumsum(others).tolist()
    assert (
        result.rounds["bytes_up"].tolist()
        == result.rounds["bytes_down"].tolist()
        == (size * np.cumsum(others)).tolist()
    )
    assert result.clients["times_selected"].tolist() == np.bincount(np.concatenate(sets(result)), minlength=M).tolist()


def test_fedavg_is_a_plain_loop_over_the_same_draws():
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(M, 8, N)), rng.normal(size=(M, 8))
    data = mpifed.arrays(A.reshape(-1, N), b.ravel(), np.repeat(np.arange(M), 8))
    result = run({"name": "fedavg", "k0": K0, "step": {"name": "constant", "a": 0.1}}, data=data)
    x = np.zeros(N)
    for ids in sets(result)[1:]:
        models = []
        for i in ids:
            w = x
            for _ in range(K0):
                w = w - 0.1 * A[i].T @ (A[i] @ w - b[i]) / 8
            models.append(w)
        x = np.mean(models, axis=0) if models else x
    assert len(empty(result)) < 12
    assert np.allclose(result.x, x, rtol=0, atol=1e-12)


@pytest.mark.parametrize("algorithm", METHODS)
def test_runs_go_on_after_an_empty_round_to_the_bit_and_files_keep_its_row(algorithm, tmp_path):
    whole = run(algorithm)
    last = max(round for round in empty(whole) if round < whole.cr)
    half = mpifed.run(STUDY, algorithm=algorithm, rounds=last, progress=False, path=tmp_path / "half.h5")
    assert half.selected(last).shape == mpifed.load(tmp_path / "half.h5").selected(last).shape == (0,)
    assert mpifed.resume(tmp_path / "half.h5", rounds=12, progress=False).x.tobytes() == whole.x.tobytes()


def test_patience_counts_an_empty_round_as_one_without_improvement():
    result = run(stop={"patience": 1})
    assert result.cr == empty(result)[0]


def test_a_penalty_takes_no_proximal_step_in_an_empty_round():
    result = run("gd", objective={"l1": 0.3})
    for round in empty(result):
        assert result.rounds["objective"][round] == result.rounds["objective"][round - 1]


def test_devices_take_no_time_for_an_empty_round_and_draw_among_those_present():
    system = {"latency": 1.0, "availability": 0.5, "deadline": 9.0}
    result = run(system=system)
    for round in empty(result):
        assert result.rounds["simulated_seconds"][round] == result.rounds["simulated_seconds"][round - 1]
        assert result.rounds["selected"][round] == 0
    assert (result.rounds["selected"][1:] <= result.rounds["available"][1:]).all()


def test_a_robust_mean_and_compressed_messages_leave_out_an_empty_round():
    for settings in ({"robust": "median"}, {"compress": {"up": "natural", "down": {"name": "topk", "k": 2}}}):
        result = run(**settings)
        for round in empty(result):
            assert all(result.rounds[name][round] == result.rounds[name][round - 1] for name in LEDGER)


@pytest.mark.parametrize("algorithm", ["fedavg", "scaffold"])
def test_a_transform_may_have_empty_rounds_played_and_fill_their_reply(algorithm, tmp_path, monkeypatch):
    """On three ranks too; the ledger does not count a request to nobody."""
    monkeypatch.chdir(tmp_path)
    Path("filled.py").write_text(PLUGIN, "utf-8")
    result = run(algorithm, plugins=["filled.py:PlaysAll"])
    for round in empty(result):
        assert all(result.rounds[name][round] == result.rounds[name][round - 1] for name in LEDGER)
        assert result.rounds["objective"][round] != result.rounds["objective"][round - 1]
    done = command("run", 'plugins=["filled.py:PlaysAll"]', *words(algorithm), "-q", "-o", "ranks.h5", ranks=3)
    assert (done.code, done.err) == (0, "")
    ranks = mpifed.load("ranks.h5")
    assert ranks.x.tobytes() == result.x.tobytes()
    assert all((ranks.rounds[name] == result.rounds[name]).all() for name in LEDGER)


ODD = """
import numpy as np

import mpifed


class Odd(mpifed.extend.Selection):
    \"\"\"Client 0 in odd rounds, and nobody in even ones.\"\"\"

    def selector(self, seed, m, rounds):
        among = lambda seed, size, round, again, present: np.intersect1d(np.arange(round % 2), present)
        return mpifed.extend.Selector(1, lambda round, again: np.arange(round % 2), among=among, probability={q})
"""


def test_a_selection_of_a_user_may_draw_nobody_if_it_says_so(tmp_path):
    def odd(q, **settings):
        path = tmp_path / f"odd_{str(q).replace('.', '_')}.py"
        path.write_text(ODD.format(q=q), "utf-8")
        return sets(run(selection=f"{path}:Odd", rounds=3, **settings))

    assert [len(ids) for ids in odd(0.5)] == [0, 1, 0, 1]
    assert [len(ids) for ids in odd(0.5, system={"availability": 1.0})] == [0, 1, 0, 1]
    for settings in ({}, {"system": {"availability": 1.0}}):
        with pytest.raises(mpifed.UserError, match=r"selects .*nobody,? in round 2: it must"):
            odd(None, **settings)
    with pytest.raises(mpifed.UserError, match=r"a selector of probability 1\.5: it must be above 0 and at most 1"):
        odd(1.5)


@pytest.mark.parametrize("share", [0, -0.1, 1.5])
def test_a_probability_is_above_0_and_at_most_1(share):
    with pytest.raises(mpifed.UserError, match=rf"selection\.share.* {share}|{share}.*selection\.share"):
        run(selection={"name": "poisson", "share": share})
