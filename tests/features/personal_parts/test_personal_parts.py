"""Parts of a model that stay with the clients: what travels, what is kept, and with what else."""

from functools import cache

import numpy as np
import pytest

import mpifed
from mpifed.core.errors import UserError

M, HIDDEN = 6, 4
BASE = {
    "data": {"name": "synthetic", "clients": M, "features": 5, "classes": 3, "least": 20, "most": 40, "test": 0.3},
    "problem": {"name": "mlp", "hidden": [HIDDEN]},
    "rounds": 4,
    "stop": {"gradient": 0.0, "diverged": 0},
    "personal": ["head.*"],
    "record": {"personal": True},
}
ABLE = ["fedavg", "fedprox", "fedopt", "scaffold", "feddyn", "fedrep"]
HEAD = (HIDDEN + 1) * 3


def run(algorithm="fedavg", **more):
    return mpifed.run(**BASE | {"algorithm": algorithm} | more)


@cache
def run_able(name):
    """Run a method with three clients a round."""
    return run(name, selection={"count": 3})


def head(models):
    return models[..., -HEAD:]


def body(models):
    return models[..., :-HEAD]


@pytest.mark.parametrize("name", ABLE)
def test_heads_stay_and_differ_and_bodies_are_the_servers(name):
    found = run_able(name)
    assert not head(found.x).any()
    assert (body(found.personal) == body(found.x)).all()
    assert (np.ptp(head(found.personal), axis=0) > 0).all()
    assert (found.rounds["objective"][-1] < found.rounds["objective"][0]).all()


@pytest.mark.parametrize("name", ABLE)
def test_bytes_are_those_of_what_travels(name):
    """Counted by hand: n − 15 numbers of 8 bytes up and down for each of 3 clients a round, twice for scaffold."""
    found = run_able(name)
    numbers = (len(found.x) - HEAD) * (2 if name == "scaffold" else 1)
    assert found.rounds["bytes_up"][-1] == found.rounds["bytes_down"][-1] == 4 * 3 * 8 * numbers


def test_nothing_corrects_what_stays():
    """Scaffold and feddyn keep control variates and linear terms for what travels: the rest descends as in fedavg.

    One step a round: corrections −c_i + c add up to 0 over all clients. In the first round of feddyn h_i is 0.
    """
    personal, step = ["hidden.*", "head.weight"], {"step": {"name": "constant", "a": 0.1}, "k0": 1}
    settings = {"personal": personal, "selection": "all", "rounds": 5}
    scaffold, feddyn, fedavg = (run({"name": name} | step, **settings) for name in ("scaffold", "feddyn", "fedavg"))
    stays = slice(0, len(fedavg.x) - 3)
    assert np.allclose(scaffold.personal, fedavg.personal, rtol=0, atol=1e-14)
    away = run({"name": "feddyn"} | step, **settings | {"rounds": 2}).personal[:, stays]
    prox = {"name": "fedprox", "mu": 0.1, "inner": 1}
    one, other = (run(algorithm | step, **settings | {"rounds": 1}) for algorithm in ({"name": "feddyn"}, prox))
    assert np.allclose(one.personal[:, stays], other.personal[:, stays], rtol=0, atol=1e-14)
    assert np.abs(away - one.personal[:, stays]).max() > 1e-3
    assert feddyn.rounds["objective"][-1] < feddyn.rounds["objective"][0]


def test_masks_compression_weights_and_attacks_are_about_what_travels():
    plain = run().personal
    masked = run(masks={})
    assert np.allclose(masked.personal, plain, atol=1e-6)
    assert (
        masked.rounds["bytes_up"][-1]
        == run(personal=None, record={}, masks={}).rounds["bytes_up"][-1] - 4 * 3 * 8 * HEAD
    )
    identity = run(compress={"up": "identity", "down": "identity"})
    assert (identity.personal == plain).all()
    n = len(identity.x) - HEAD
    short = run(compress={"up": {"name": "topk", "k": n}, "down": {"name": "topk", "k": n}})
    assert np.allclose(short.personal, plain, atol=1e-12)
    attacked = run(attack={"name": "sign-flip", "clients": 1}, robust="median")
    assert attacked.rounds["objective"][-1] < attacked.rounds["objective"][0]
    weighted = run(objective={"weights": "samples"})
    assert np.abs(body(weighted.x) - body(plain)[0]).max() > 1e-6


def test_accuracies_and_numbers_of_clients_are_of_joined_models():
    found = run(evaluate={"clients": True}, rounds=12, algorithm={"name": "fedavg", "k0": 10, "step": 0.5})
    assert found.rounds["accuracy"][-1] == pytest.approx(found.over_clients("accuracy")["mean"][-1])
    assert "joined model" in found.attrs["notes"]


def test_clients_that_never_train_get_the_mean_of_what_stays_and_train_that_alone(tmp_path):
    settings = {"unseen": [4, 5], "unseen_step": 0.5, "unseen_steps": 20}
    found = run(evaluate=settings, rounds=8, algorithm={"name": "fedavg", "k0": 10, "step": 0.5})
    assert "mean of what stays" in found.attrs["notes"]
    mean = np.concatenate([body(found.x), head(found.personal).mean(axis=0)])
    np.savez(tmp_path / "mean.npz", x=mean)
    again = mpifed.run(
        **BASE | {"personal": None, "record": {}, "rounds": 0, "algorithm": "fedavg", "evaluate": settings},
        start=str(tmp_path / "mean.npz"),
    )
    assert (found.unseen["accuracy"][-1] == again.unseen["accuracy"][-1]).all()


def test_columns_of_a_linear_model_stay_by_name():
    found = mpifed.run(
        data={"name": "gaussian", "clients": 5, "samples": 12, "features": 4},
        problem="logistic",
        algorithm="fedavg",
        personal=["x0", "x[23]"],
        record={"personal": True},
        rounds=3,
        stop={"gradient": 0.0},
    )
    assert found.x[[0, 2, 3]].tolist() == [0, 0, 0]
    assert (found.personal[:, 1] == found.x[1]).all()
    assert (np.ptp(found.personal[:, [0, 2, 3]], axis=0) > 0).all()


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        (
            {"personal": ["hed.*"]},
            'personal names "hed.*", which is no parameter of mlp: there are hidden.0.weight (20), ',
        ),
        ({"personal": ["h*"]}, "names all parameters, so that nothing would travel"),
        ({"personal": []}, "personal"),
    ],
)
def test_patterns_that_name_nothing_or_everything_are_refused(more, sentence):
    with pytest.raises(UserError) as refused:
        run(**more)
    assert sentence in str(refused.value)


def test_a_run_starts_from_the_model_of_one_with_parts_at_home(tmp_path):
    path = tmp_path / "first.h5"
    run(rounds=2).save(path)
    again = run(start=str(path), rounds=0)
    assert (head(again.personal) == head(run(rounds=0).personal)).all()
    assert (body(again.x) == body(mpifed.load(path).x)).all()


@pytest.mark.parametrize("name", ["fedavg", "scaffold", "fedrep"])
@pytest.mark.parametrize("privacy", [None, {}, {"per": "layer"}], ids=["plain", "flat", "layer"])
def test_who_shares_a_block_changes_no_bit(name, privacy):
    """Rows of uploads without what stays lie in memory as those of a client alone, so that their norms are the same."""
    if privacy is not None:  # noise would round sums to its grid, and hide their last bits
        privacy = {"clip": 0.01, "noise_multiplier": 0} | privacy
    alone, together = (run(name, privacy=privacy, block_bytes=size) for size in (1, 10_000_000))
    assert np.array_equal(alone.x, together.x)
    assert alone.rounds["grad_norm_sq"].tolist() == together.rounds["grad_norm_sq"].tolist()
