"""Pairs of settings of the federation that do not go together are refused by one sentence before round one."""

from __future__ import annotations

import re

import pytest

import mpifed as package
from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.cli.main import main
from mpifed.core.errors import UserError
from mpifed.federation.traits import Refused
from tests.helpers import traits
from tests.helpers.algorithm_cases import SERVED
from tests.helpers.algorithm_runs import build

TOPK = {"name": "topk", "k": 3}
DATA = {"name": "gaussian", "clients": 9, "samples": 6, "features": 4}
DUAL = {"problem": "logistic", "algorithm": "feddcd"}
EVERYONE = (
    "fedgia needs a gradient of every client in every round, also of those that are not selected, so no client can be "
    "absent"
)
STEPS = "system.partial = true is wrong: clients of {} cannot take fewer local steps, those of "
REFUSED = [
    ({"algorithm": "ef21", "compress": {"up": TOPK}}, 'compress.up = "topk" is wrong: ef21 needs exact uploads'),
    (DUAL | {"compress": {"down": TOPK}}, 'compress.down = "topk" is wrong: feddcd needs exact downloads'),
    (
        {"algorithm": "newton", "problem": "logistic", "compress": {"up": TOPK}},
        'compress.up = "topk" is wrong: newton needs exact uploads, because fednl is Newton\'s method',
    ),
    (
        {"algorithm": "fednl", "problem": "logistic", "compress": {"down": TOPK}},
        'compress.down = "topk" is wrong: fednl needs exact downloads, because it compresses Hessians',
    ),
    ({"compress": {"up": {"name": "rank"}}}, 'compress.up = "rank" is wrong: '),
    ({"compress": {"feedback": "error"}}, 'compress.feedback = "error" is wrong: it is about compress.up'),
    ({"compress": {"up": TOPK}, "masks": {}}, 'compress.up = "topk" cannot be used with masks'),
    (
        {"algorithm": "fedadmm", "compress": {"up": TOPK, "feedback": "none"}},
        'compress.feedback = "none" is wrong: the server of fedadmm keeps the last upload of every client',
    ),
    ({"compress": {"up": {"name": "topk"}}}, "compress.up.k is missing"),
    ({"compress": {"up": TOPK, "feedback": "ef"}}, 'compress.feedback = "ef" is wrong: it must be "auto" or "memory"'),
    ({"algorithm": {"name": "diana", "compressor": "natural"}, "masks": {}}, "masks cannot be used with diana"),
    ({"algorithm": "fedepm", "masks": {}}, "masks cannot be used with fedepm: its server needs "),
    (
        {"algorithm": {"name": "sfedavg", "average": "new"}, "masks": {}},
        "masks cannot be used with sfedavg: its server needs ",
    ),
    ({"selection": "biased", "masks": {}}, "masks cannot be used with selection.name = 'biased': candidates send"),
    (
        {"selection": {"name": "uniform", "count": 1}, "masks": {}},
        "selection takes 1 client a round, but masks need at least 2: the sum of one upload is that upload",
    ),
    (
        {"system": {"dropout": 0.2, "least": 3}, "masks": {}},
        "system.least = 3 is wrong: with masks.threshold = 0.67 masks of 5 selected clients cancel only where 4 reply, "
        "so it must be at least 4",
    ),
    ({"masks": {"bits": 65}}, "masks.bits = 65 is wrong"),
    ({"masks": {"kind": "none"}}, 'masks.kind = "none" is wrong: it must be "seeds" or "vectors"'),
    ({"algorithm": "fedgia", "system": {"dropout": 0.3}}, f"system.dropout = 0.3 is wrong: {EVERYONE}"),
    ({"algorithm": "fedgia", "system": {"deadline": 3}}, f"system.deadline = 3.0 is wrong: {EVERYONE}"),
    (
        {"algorithm": "marina", "system": {"dropout": 0.3}},
        "system.dropout = 0.3 is wrong: marina needs a gradient of every client in some rounds",
    ),
    (
        DUAL | {"system": {"speed": 9}},
        "system.passes is missing: feddcd cannot tell beforehand how often its clients pass over their samples, so "
        "system.speed needs it",
    ),
    (
        {"stop": {"simulated_seconds": 9}},
        "stop.simulated_seconds = 9.0 is wrong: time is simulated only with a table [system], which states the speed",
    ),
    (
        {"system": {"partial": True, "speed": 9}},
        "system.partial = true is wrong without system.deadline: clients take fewer local steps where",
    ),
    (
        {"system": {"partial": True, "deadline": 9}},
        "system.partial = true is wrong without system.speed: clients take fewer local steps where",
    ),
    *[
        ({"algorithm": name, "system": {"partial": True, "speed": 9, "deadline": 9}}, STEPS.format(name))
        for name in ("scaffold", "ditto")
    ],
    *[
        ({"problem": "logistic", "algorithm": name, "selection": {"name": "cyclic", "count": 3}},
         f"selection.overlap = 0 is wrong: {name} exchanges within the selected clients alone, and 3 of 9 by turns are "
         "always the same sets, so it must be at least 1")
        for name in ("feddcd", "accfeddcd", "proxskip")
    ],
    (
        {"problem": "mlp", "selection": {"name": "importance", "count": 2}},
        "selection.odds is missing: mlp tells no Lipschitz constants L_i to take odds from",
    ),
    (
        {"algorithm": "fednova", "selection": {"name": "importance", "odds": [1.0] * 9}},
        'selection.name = "importance" is wrong: fednova needs equal probabilities, because its step',
    ),
    *[
        ({"algorithm": name, "selection": "greedy"},
         f'selection.name = "greedy" is wrong: clients of {name} have no dual step to score, so it must be "biased"')
        for name in ("fedavg", "fedgia")
    ],
]  # fmt: skip


def run(**tables):
    return package.run({"data": DATA, "algorithm": "fedavg", "rounds": 1} | tables)


@pytest.mark.parametrize(("tables", "sentence"), REFUSED, ids=[sentence for _, sentence in REFUSED])
def test_what_does_not_go_together_is_refused(tables, sentence):
    with pytest.raises(UserError, match=f"^{re.escape(sentence)}") as told:
        run(**tables)
    assert "\n" not in str(told.value)


FINE = [
    *[
        DUAL | {"selection": {"name": "cyclic", **rule}}
        for rule in ({"count": 3, "overlap": 1}, {"count": 4}, {"count": 9})
    ],
    {"selection": {"name": "cyclic", "count": 3}},
    {"problem": "mlp", "selection": {"name": "importance", "odds": [1.0] * 9}},
    DUAL | {"selection": {"name": "greedy", "count": 3}},
    {"algorithm": "fedadmm", "compress": {"up": "identity", "feedback": "none"}},
    {"algorithm": {"name": "fedavg", "aggregate": "chosen"}, "compress": {"up": TOPK, "feedback": "error"}},
]


@pytest.mark.parametrize("tables", FINE, ids=str)
def test_what_is_near_to_it_runs(tables):
    assert run(**tables).cr == 1


KEEPING = [[f"algorithm={name}"] for name in SERVED if build(name).upload.last(build(name))]


@pytest.mark.parametrize("feedback", ["error", "none"])
@pytest.mark.parametrize(
    "words", [*KEEPING, ["algorithm=fedavg", "algorithm.aggregate=all"]], ids=lambda words: words[-1]
)
def test_where_the_server_keeps_uploads_other_feedback_than_memory_is_refused(words, feedback, tmp_path, capsys):
    table = ["compress.up=natural", f"compress.feedback={feedback}", "data=gaussian", "data.clients=8"]
    assert main(["run", *words, *table, "-o", str(tmp_path / "out.h5")]) == 2
    assert f'compress.feedback = "{feedback}" is wrong: the server of {words[0][10:]} keeps' in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_only_methods_that_need_equal_probabilities_or_everyone_refuse_others():
    every = {name: build(name) for name in Algorithm.choices}
    unequal = {name for name, algorithm in every.items() if isinstance(algorithm.mean, Refused)}
    assert unequal >= {"sfedavg", "sfedprox", "fednova", "fedbuff", "fedepm-graph"}
    everyone = {name for name, algorithm in every.items() if not traits.bears_absence(algorithm)}
    assert everyone >= {"fedgia", "fednl", "marina", "newton"}
