"""Guarantees attacked: one client is replaced or removed in studies with other options, and what moves is measured.

A run is repeated with other data of one client, while what is released, sums or uploads with noise, is that of the
first run: whatever else then differs tells of that client. Nothing may but columns that docs/privacy.md names, and
the sums, or uploads, before noise move by no more than the noise is sized for.
"""

from typing import Any, NamedTuple

import numpy as np
import pytest

import mpifed
from mpifed.core.errors import UserError
from mpifed.features.privacy import correlated_noise, discrete_gaussian, mechanisms
from mpifed.features.privacy.transform import ClippedSums
from mpifed.federation.schedule import Schedule

pytest.importorskip("dp_accounting")

M, D, N = 12, 6, 3  # clients, samples of each, features
ONE = 7  # the client that is attacked
RNG = np.random.default_rng(0)
X = RNG.standard_normal((M, D, N))
Y = (RNG.random((M, D)) < 0.5).astype(float)
SIZES = np.repeat(np.arange(M), D)
UNEQUAL = np.repeat(np.arange(M), np.tile([2, 4, 6, 6, 8, 10], 2))

FEDAVG = {"name": "fedavg", "step": {"name": "constant", "a": 0.1}, "k0": 2}
MLP = {"name": "mlp", "hidden": [2]}
BASE = {
    "problem": "least-squares",
    "rounds": 3,
    "algorithm": FEDAVG,
    "stop": {"gradient": 0.0, "diverged": 0},
    "privacy": {"clip": 0.02, "noise_multiplier": 1.0},
    "progress": None,
}
GUARANTEES: dict[str, dict[str, Any]] = {
    "gaussian": {"selection": {"name": "uniform", "count": 8}},
    "sampled": {"selection": {"name": "poisson", "share": 0.6}, "evaluate": {"every": 3}},
    "adaptive": {
        "selection": {"name": "poisson", "share": 0.6},
        "privacy": {"quantile": 0.5, "count_noise": 2.0},
        "evaluate": {"every": 3},
    },
    "correlated": {
        "selection": {"name": "cyclic", "count": 4},
        "privacy": {"mechanism": {"name": "correlated-gaussian", "bands": 3}},
    },
    "distributed": {
        "selection": {"name": "uniform", "count": 8},
        "masks": {"sums": "fixed-point", "bits": 24, "threshold": 0.5},
        "privacy": {"mechanism": "distributed-discrete-gaussian"},
    },
}
TURNS = {"correlated"}  # needs selection by turns
SAMPLED = {"sampled", "adaptive"}
ALL = set(GUARANTEES)

ASKS = "it asks clients for exact numbers of their data|candidates send their scores one by one"
ODDS = "it weights uploads by the odds of their clients"
EARLY = "rounds share noise, and a client must be in one of them alone"
MASKED = "masks hide no single upload, which a round may have"
PLAIN = "which only plain sums of uploads can have"
SEEN = {"clients": [1.0] * 10 + [4.0, 7.0]}  # weights

# option -> words, and the guarantees that refuse it with the sentence
OPTIONS: dict[str, tuple[dict[str, Any], dict[str, set[str]]]] = {
    "alone": ({}, {}),
    "weights": ({"objective": {"weights": SEEN["clients"]}}, {PLAIN: {"distributed"}}),
    "largest weight": (
        {"objective": {"weights": [1.0] * 7 + [30.0] + [1.0] * 4}, "privacy": {"max_weight": 1.5}},
        {PLAIN: {"distributed"}},
    ),
    "weights by samples": ({"objective": {"weights": "samples"}, "sizes": UNEQUAL}, {PLAIN: {"distributed"}}),
    "selection all": ({"selection": "all"}, {EARLY: TURNS}),
    "selection poisson": ({"selection": "poisson"}, {EARLY: TURNS, MASKED: {"distributed"}}),
    "selection cover": ({"selection": "cover"}, {EARLY: TURNS}),
    "selection cyclic": ({"selection": {"name": "cyclic", "count": 4}}, {}),
    "selection biased": ({"selection": "biased"}, {ASKS: ALL}),
    "selection power-of-choice": ({"selection": "power-of-choice"}, {ASKS: ALL}),
    "selection greedy": ({"selection": "greedy"}, {"clients of fedavg have no dual step to score": ALL}),
    "selection importance": ({"selection": {"name": "importance", "count": 3}}, {ODDS: ALL}),
    "asynchronous": (
        {"algorithm": "fedbuff", "system": {"speed": 100}, "asynchronous": {}, "selection": "all", "masks": None},
        {r"cannot be used with \[asynchronous\]|clients send integers": ALL},
    ),
    "graph": ({"graph": "ring"}, {"fedavg has a server": ALL}),
    "certify": ({"algorithm": {"certify": True}}, {"theorems are about uploads without clipping and noise": ALL}),
    "dropout": (
        {"system": {"dropout": 0.2, "least": 5}, "selection": "all"},
        {EARLY: TURNS, "at least 6": {"distributed"}},
    ),
    "absence by turns": ({"system": {"dropout": 0.2, "least": 3}, "selection": {"name": "cyclic", "count": 4}}, {}),
    "deadline": ({"system": {"speed": 100, "deadline": 0.2, "least": 4}}, {}),
    "partial work": ({"system": {"speed": 100, "deadline": 0.2, "partial": True, "least": 4}}, {}),
    "compress.up": ({"compress": {"up": {"name": "topk", "k": 1}}}, {"may make a clipped upload longer": ALL}),
    "compress.down": ({"compress": {"down": {"name": "topk", "k": 1}}}, {}),
    "robust mean": ({"robust": "median"}, {"noise is sized for a sum|masks hide single uploads": ALL}),
    "attack": (
        {"attack": {"name": "sign-flip", "clients": 2}},
        {"attackers would not clip|masks hide single uploads": ALL},
    ),
    "float32": ({"dtype": "float32"}, {}),
    "little noise in float32": (
        {"dtype": "float32", "privacy": {"noise_multiplier": 1e-5}},
        {"cannot hold the grid of so little noise": ALL - {"distributed"}},
    ),
    "momentum": ({"algorithm": {"optimizer": {"name": "momentum"}}}, {}),
    "adam": ({"algorithm": {"optimizer": {"name": "adam"}}}, {}),
    "mini-batches": ({"algorithm": {"batch_size": 4, "epochs": 1.5}}, {}),
    "cosine": ({"algorithm": {"step": {"name": "cosine", "a": 0.1}}}, {}),
    "fedopt": ({"algorithm": {"name": "fedopt"}}, {}),
    "fedprox": ({"algorithm": {"name": "fedprox"}}, {}),
    "scaffold": ({"algorithm": {"name": "scaffold"}}, {}),
    "feddyn": ({"algorithm": {"name": "feddyn"}}, {}),
    "fedbuff": ({"algorithm": {"name": "fedbuff"}}, {}),
    "ditto": ({"algorithm": {"name": "ditto"}}, {}),
    "apfl": ({"algorithm": {"name": "apfl"}}, {}),
    "fedrep": ({"algorithm": {"name": "fedrep"}, "problem": MLP, "personal": ["head.*"]}, {}),
    "local-gd": ({"algorithm": {"name": "local-gd", "gamma": "constant"}}, {}),
    "fedgia": ({"algorithm": {"name": "fedgia"}}, {"its rounds ask more clients than those of one selection": ALL}),
    "network": ({"problem": MLP}, {}),
    "layers": ({"problem": MLP, "privacy": {"per": "layer"}}, {'per = "layer" is wrong': {"adaptive"}}),
    "head at home": ({"problem": MLP, "personal": ["head.*"], "record": {"personal": True}}, {}),
    "column at home": ({"personal": ["x1"]}, {}),
    "on samples": ({"space": "samples"}, {}),
    "numpy": ({"kernels": "numpy"}, {}),
    "small blocks": ({"block_bytes": 1}, {}),
    "sums in any order": ({"reproducible": False}, {}),
    "models recorded": ({"record": {"models": 1}}, {}),
    "numbers of clients": ({"problem": MLP, "evaluate": {"clients": True}}, {}),
    "unseen clients": ({"problem": MLP, "evaluate": {"unseen": [0], "unseen_step": 0.1}}, {EARLY: TURNS}),
    "validation": ({"problem": MLP, "validated": True}, {}),
    "fixed point": ({"masks": {"sums": "fixed-point"}}, {MASKED: SAMPLED}),
    "masked": ({"masks": {"sums": "masked", "bits": 44, "fraction": 20}}, {MASKED: SAMPLED}),
    "narrow masks": (
        {"masks": {"sums": "fixed-point", "bits": 16, "fraction": 4}},
        {
            MASKED: SAMPLED,
            r"whole numbers up to 1024, .* takes entries up to .*; it must be at most": {"gaussian", "correlated"},
        },
    ),
    "an epsilon": ({"privacy": {"noise_multiplier": None, "epsilon": 4.0}}, {}),
    "a quantile": (
        {"privacy": {"quantile": 0.5, "count_noise": 2.0}},
        {"would be counted without noise": {"distributed"}, "noise of a round is sized": TURNS},
    ),
}
ROWS = [(guarantee, option) for option in OPTIONS for guarantee in GUARANTEES]
# each option with one guarantee in turn, and all alone, or refused, which costs little: the others are slow
FAST = {row for k, row in enumerate(ROWS) if (k // len(ALL) + k) % len(ALL) == 0 or row[1] == "alone"}

TRUE_DATA = ("objective", "grad_norm_sq", "accuracy", "personal_", "validation_", "test_")  # docs/privacy.md


class Study(NamedTuple):
    """A run, its sums before noise with what clients knew of them, and the longest vector that a client sent."""

    result: mpifed.Result
    sums: list[Any]
    longest: float


def merged(table, more):
    """Return a table with more words in it; a component with another name takes the place of the one before."""
    both = dict(table)
    for key, value in more.items():
        inner = isinstance(value, dict) and isinstance(both.get(key), dict) and "name" not in value
        both[key] = merged(both[key], value) if inner else value
    return both


def find_refusal(guarantee, option):
    """Return the sentence with which a guarantee refuses an option; None where it takes it."""
    refused = OPTIONS[option][1]
    return next((sentence for sentence, guarantees in refused.items() if guarantee in guarantees), None)


@pytest.fixture
def play(monkeypatch):
    """Run a study, with entropy from a seed, and with the sums ``of`` another run in place of its own."""
    state: dict[str, Any] = {}
    decode, schedule = ClippedSums.decode, Schedule.select

    def read(self, request, reply):
        data = request.transforms.get(self.name)
        if data is not None:
            k = len(state["sums"])
            state["sums"].append((reply.rows.copy(), reply.layout, reply.count, data.copy(), self.heaviest))
            if state["of"] is not None:
                rows, reply.layout, reply.count, *_ = state["of"].sums[k]
                reply.rows = rows.copy()
        decode(self, request, reply)

    def select(self, draw, repeats):
        selected = schedule(self, draw, repeats)
        if state["without"] is not None and selected is not None:
            self.selected = selected[selected != state["without"]]
        return self.selected

    def watch(cls):
        protect = cls.protect

        def protected(self, batch, rows, scale, plan, seed):
            sent = protect(self, batch, rows, scale, plan, seed)
            if not self.under_masks:  # whose clients send noise too
                state["longest"] = max(state["longest"], np.linalg.norm(sent, axis=1).max() * (plan[0] or 1.0))
            return sent

        monkeypatch.setattr(cls, "protect", protected)

    monkeypatch.setattr(ClippedSums, "decode", read)
    monkeypatch.setattr(Schedule, "select", select)
    watch(mechanisms.GaussianNoise)
    for module in (mechanisms, correlated_noise, discrete_gaussian):
        monkeypatch.setattr(module, "entropy_words", lambda count: state["words"].random_raw(count))

    def run(table, X, Y, of=None, without=None):
        words = np.random.default_rng(1).bit_generator
        state.update(words=words, sums=[], of=of, without=without, longest=0.0)
        table = dict(table)
        sizes = table.pop("sizes", SIZES)
        data = mpifed.arrays(X.reshape(-1, N), Y.reshape(-1), sizes)
        if table.pop("validated", False):
            table |= {"data.validation": 0.3, "data.test": 0.2}
        result = mpifed.run(data=data, **table)
        return Study(result, state["sums"], state["longest"])

    return run


def find_move(one, other, quantile):
    """Return how far the sums of two runs are apart, in multiples of the bound, and the counts of clients that fit."""
    far, counted = 0.0, 0.0
    for (rows, *_, data, heaviest), (others, *_) in zip(one.sums, other.sums, strict=True):
        size = max(rows.size, others.size)
        a, b = (r.reshape(-1).astype(float) if r.size else np.zeros(size) for r in (rows, others))
        moved = a - b
        if quantile:
            counted = max(counted, abs(moved[-1]))
            moved = moved[:-1]
        if len(data) > 2:  # bound, step, scale, longest rounded vector, bits: sums modulo 2^bits
            half = 2.0 ** (data[4] - 1)
            far = max(far, np.linalg.norm((moved + half) % (2 * half) - half) / data[3])
        else:
            far = max(far, np.linalg.norm(moved) * (data[1] or 1.0) / (data[0] * heaviest))
    return far, counted


def find_public(result, but=()):
    """Return all that a result has, less columns of the true data, seconds, and the names ``but``."""
    columns = {f"rounds {key}": values for key, values in result.rounds.items()}
    columns |= {f"clients {key}": values for key, values in result.clients.items()}
    columns |= {f"models {key}": values for key, values in result.models.items()} if "models" not in but else {}
    columns |= {"x": result.x, "selection": result.selection}
    columns |= {f"@{key}": value for key, value in result.attrs.items()}
    ignored = ("rank", "@config", "@started", "@finished", "@git")  # the digest of the data is in the study
    return {
        name: repr(np.asarray(value).tolist())
        for name, value in columns.items()
        if not any(word in name for word in (*TRUE_DATA, *ignored, *but))
        and ("seconds" not in name or "simulated" in name)
    }


def list_neighbours():
    """Return other samples of one client: of any size, and of one that overflows."""
    wild, huge = X.copy(), X.copy()
    wild[ONE] = 5 * np.random.default_rng(5).standard_normal((D, N))
    huge[ONE] = 1e200
    other = Y.copy()
    other[ONE] = 1 - other[ONE]
    return {"other": (wild, other), "huge": (huge, Y)}


@pytest.mark.parametrize(
    ("guarantee", "option"),
    [pytest.param(*row, marks=[] if row in FAST or find_refusal(*row) else pytest.mark.slow) for row in ROWS],
)
def test_a_client_moves_sums_by_no_more_than_the_noise_is_sized_for_and_nothing_else(guarantee, option, play):
    table = merged(merged(BASE, GUARANTEES[guarantee]), OPTIONS[option][0])
    if (sentence := find_refusal(guarantee, option)) is not None:
        with pytest.raises(UserError, match=sentence):
            play(table, X, Y)
        return
    first = play(table, X, Y)
    assert first.result.attrs["privacy"].startswith("guaranteed: ")
    drawn = table["selection"] == "poisson" or (isinstance(table["selection"], dict) and "share" in table["selection"])
    quantile = "quantile" in table["privacy"]
    farthest = 0.0
    for name, (other, labels) in list_neighbours().items():
        if name == "huge" and table.get("dtype") == "float32":
            other = np.where(np.abs(other) > 1e100, 1e30, other)
        second = play(table, other, labels, first)
        moved, counted = find_move(first, second, quantile)
        farthest = max(farthest, moved)
        assert moved <= 2
        assert counted <= 1
        if guarantee != "distributed":
            bounds = [data[0] * heaviest for *_, data, heaviest in second.sums]
            assert 0 < second.longest <= max(bounds)
        assert find_public(second.result) == find_public(first.result)
    assert farthest > 1e-3
    if drawn and first.result.attrs.get("status") != "stopped":
        gone = play(table, X, Y, first, without=ONE)
        moved, counted = find_move(first, gone, quantile)
        assert moved <= 1
        assert counted <= 0.5
        traffic = (
            "selection",
            "times_selected",
            "loads",
            "bytes_",
            "bits_",
            "exchanges",
            "local_steps",
        )  # of docs/private-clients.md
        assert find_public(gone.result, traffic) == find_public(first.result, traffic)


def test_there_are_sixty_combinations_that_run_and_those_that_are_refused_say_why():
    refused = [row for row in ROWS if find_refusal(*row)]
    assert len(FAST - set(refused)) >= 45
    assert len(ROWS) - len(refused) >= 60
    assert {option for _, option in FAST} == set(OPTIONS)
