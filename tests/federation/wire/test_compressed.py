"""[compress]: what arrives, what both sides keep, what is charged, and what is refused."""

from __future__ import annotations

import math

import numpy as np
import pytest

import mpifed
from mpifed.algorithms.base import Algorithm
from mpifed.cli.main import main
from mpifed.core.errors import UserError
from mpifed.experiment.checkpoint import rows_of
from mpifed.experiment.config import experiment
from mpifed.experiment.notes import notes
from mpifed.federation.participation.selection import All, Uniform
from tests.helpers.algorithm_cases import CASES as CASES_OF_ALL
from tests.helpers.algorithm_cases import SERVED, SETTINGS, members, start
from tests.helpers.algorithm_runs import M, N, Run, build, same

TOPK = {"name": "topk", "k": 3}
RANDK = {"name": "randk", "k": 3}
GAMMA = 0.02
STEP = {"step": {"name": "constant", "a": GAMMA}}


def topk(x, k=3):
    kept = sorted(range(len(x)), key=lambda j: (-abs(x[j]), j))[:k]
    return np.array([x[j] if j in kept else 0.0 for j in range(len(x))])


def fedavg(run, feedback, rounds, down=False):
    """FedAvg with one local step and compressed messages, as a loop over clients: the models."""
    samples = list(run.samples())
    x = np.zeros(N)
    kept, received, models = np.zeros((M, N)), np.zeros(N), []
    for round in range(1, rounds + 1):
        chosen = run.selector.select(round, 0)
        at = x
        if down:
            received = at = received + topk(x - received)
        arrived = []
        for i in range(M) if chosen is None else chosen:
            A, b = samples[i]
            w = at - GAMMA * A.T @ (A @ at - b) / len(b)
            if feedback == "memory":
                kept[i] = kept[i] + topk(w - kept[i])
                arrived.append(kept[i].copy())
            elif feedback == "error":
                sent = topk(w - at + kept[i])
                kept[i] = w - at + kept[i] - sent
                arrived.append(at + sent)
            else:
                arrived.append(at + topk(w - at))
        x = sum(arrived) / len(arrived)
        models.append(x)
    return np.array(models)


@pytest.mark.parametrize("share", [1.0, 0.4])
@pytest.mark.parametrize("down", [False, True])
@pytest.mark.parametrize("feedback", ["memory", "error", "none"])
def test_messages_are_those_of_a_plain_loop_over_clients(feedback, down, share):
    table = {"up": TOPK, "feedback": feedback} | ({"down": TOPK} if down else {})
    run = Run(build("fedavg", {"k0": 1, **STEP}), selection=Uniform(share=share), compress=table)
    models = run.rounds(25)
    assert np.allclose(models, fedavg(run, feedback, 25, down), rtol=1e-10, atol=1e-12)
    plain = Run(build("fedavg", {"k0": 1, **STEP}), selection=Uniform(share=share)).rounds(25)
    assert not np.allclose(models, plain, rtol=1e-3, atol=1e-4)


def test_gradient_descent_with_memory_is_ef21():
    one = Run(build("gd", {"gamma": GAMMA}), selection=All(), compress={"up": TOPK})
    other = Run(build("ef21", {"gamma": GAMMA, "compressor": TOPK}), selection=All())
    assert np.allclose(one.rounds(40), other.rounds(40), rtol=1e-12, atol=1e-13)
    assert one.fed.ledger.bits_up == other.fed.ledger.bits_up


@pytest.mark.parametrize("name", [name for name in SERVED if name != "flame-dp"])
def test_identity_changes_no_bit_and_no_charge(name):
    plain, same_thing = (
        start(build(name, SETTINGS.get(name, {})), compress=table)
        for table in (None, {"up": "identity", "down": "identity"})
    )
    assert plain.rounds(3).tobytes() == same_thing.rounds(3).tobytes()
    assert same(plain.states(), same_thing.states())
    assert vars(plain.fed.ledger) == vars(same_thing.fed.ledger)


EXACT = [  # methods that end at the minimiser; the last two keep errors, the others memory
    ("fedgia", {}, 1.0),
    ("fedadmm", {}, 0.4),
    ("gd", {"gamma": 0.2}, 1.0),
    ("feddyn", {"alpha": 1.0, "step": {"name": "constant", "a": 0.05}}, 0.4),
    ("scaffold", {"step": {"name": "constant", "a": 0.05}}, 1.0),
]


@pytest.mark.parametrize("compressor", [TOPK, {"name": "randk", "k": 5}], ids=str)
@pytest.mark.parametrize(("name", "options", "share"), EXACT)
def test_methods_that_end_at_the_minimiser_do_so_with_compressed_uploads(name, options, share, compressor):
    run = Run(build(name, options), selection=Uniform(share=share), compress={"up": compressor})
    before = run.measure()[1]
    run.rounds(200)
    assert run.measure()[1] < 1e-3 * before


def test_without_feedback_the_largest_numbers_alone_end_elsewhere():
    run = Run(build("gd", {"gamma": 0.1}), selection=All(), compress={"up": TOPK, "feedback": "none"})
    run.rounds(600)
    assert run.measure()[1] > 1e-3


@pytest.mark.parametrize("compressor", [TOPK, RANDK, "natural"], ids=str)
@pytest.mark.parametrize("scaling", ["common", "own"])
@pytest.mark.parametrize("name", ["feddcd", "accfeddcd"])
def test_dual_variables_add_up_to_zero_because_clients_know_what_arrived(name, scaling, compressor):
    run = Run(build(name, {"scaling": scaling}), "quadratic", compress={"up": compressor})
    run.rounds(30)
    y = run.states().y
    assert np.abs(y).max() > 1e-2
    assert np.abs(y.sum(axis=0)).max() < 1e-11


def test_linear_terms_of_proxskip_add_up_to_zero():
    run = Run(build("proxskip", {"p": 0.3}), selection=All(), compress={"up": TOPK})
    before = run.measure()[1]
    run.rounds(150)
    h = run.states().h
    assert np.abs(h).max() > 1e-2
    assert np.abs(h.sum(axis=0)).max() < 1e-10
    assert run.measure()[1] < 1e-3 * before


def test_feddyn_keeps_the_mean_of_its_linear_terms_but_for_what_is_not_sent_yet():
    """h = mean h_i + α mean e_i: errors do not pile up at the server."""
    run = Run(build("feddyn", {"alpha": 1.0, **STEP}), compress={"up": TOPK})
    run.rounds(30)
    (host,) = run.hosts
    error = host.uploads.kept["update 0"][host.slot].mean(axis=0)
    assert np.abs(error).max() > 1e-4
    assert np.allclose(run.server.h, run.states().h.mean(axis=0) + error, atol=1e-12)


CASES = [
    ("fedavg", {"up": RANDK, "feedback": "error"}),
    ("fedavg", {"up": RANDK, "down": {"name": "dither", "s": 3}}),
    ("fedgia", {"up": {"name": "randseqk", "k": 4}, "down": TOPK}),
    ("fedadmm", {"up": "natural"}),
    ("scaffold", {"up": RANDK, "down": "natural"}),
    ("fedopt", {"up": {"name": "dither"}, "feedback": "none"}),
    ("sfedavg", {"up": TOPK}),
    ("fedepm", {"up": TOPK, "down": TOPK}),
    ("flame", {"up": TOPK}),
]


@pytest.mark.parametrize("cuts", [(0, 1, 2, 11, M), range(M + 1)], ids=lambda cuts: f"{len(cuts) - 1} hosts")
@pytest.mark.parametrize(("name", "table"), CASES, ids=str)
def test_bits_and_charges_do_not_depend_on_how_many_hosts_there_are(name, table, cuts):
    alone, together = (Run(build(name), compress=table, cuts=places) for places in (None, cuts))
    assert alone.rounds(4).tobytes() == together.rounds(4).tobytes()
    assert same(alone.states(), together.states())
    assert vars(alone.fed.ledger) == vars(together.fed.ledger)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_single_numbers_travel_as_they_are_both_ways(dtype):
    """The penalty of adaptive FedGiA goes down, and an error comes up."""
    size = np.dtype(dtype).itemsize
    run = Run(build("fedgia", {"adaptive": True}), compress={"up": TOPK, "down": TOPK}, dtype=dtype)
    run.rounds(5)
    assert run.fed.ledger.bits_up == run.fed.ledger.bits_down == 5 * M * (3 * (8 * size + 4) + 8 * size)
    run.hosts[0].algorithm = watch = Told(run.algorithm)
    sigma = run.server.sigma
    run.rounds(1)
    assert set(watch.told) == {sigma}


class Told:
    """An algorithm that notes the penalties of updates."""

    def __init__(self, algorithm):
        self.algorithm, self.told = algorithm, []

    def __getattr__(self, name):
        return getattr(self.algorithm, name)

    def update(self, f, client, x, sigma, selected):
        self.told.append(float(sigma))
        return self.algorithm.update(f, client, x, sigma, selected)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_message_is_charged_to_the_bit_and_downloads_go_to_all_clients(dtype):
    size, chosen = np.dtype(dtype).itemsize, math.ceil(0.4 * M)
    run = Run(build("fedavg", STEP), compress={"up": TOPK, "down": "natural"}, dtype=dtype)
    run.rounds(5)
    ledger, up, down = run.fed.ledger, 3 * (8 * size + 4), {8: 12, 4: 9}[size] * N
    assert (ledger.bits_up, ledger.bits_down) == (5 * chosen * up, 5 * M * down)
    assert (ledger.bytes_up, ledger.bytes_down) == (5 * chosen * -(-up // 8), 5 * M * -(-down // 8))
    assert (ledger.exchanges, ledger.uploads, ledger.downloads) == (5, 5 * chosen, 5 * M)


def test_every_array_of_a_reply_is_a_message_and_single_numbers_travel_as_they_are():
    run = Run(build("scaffold", STEP), selection=All(), compress={"up": TOPK})
    run.rounds(2)
    assert run.fed.ledger.bits_up == 2 * M * 2 * 3 * (64 + 4)
    options = {"server": {"name": "fedexp"}, **STEP}  # uploads ‖w_i − x‖² too
    run = Run(build("fedopt", options), selection=All(), compress={"up": TOPK})
    run.rounds(2)
    assert run.fed.ledger.bits_up == 2 * M * (3 * (64 + 4) + 64)


STUDY = {"data": {"name": "gaussian", "clients": 8, "samples": 20, "features": 12}, "rounds": 4, "selection": "all"}


def result(**tables):
    return mpifed.run(STUDY | tables, progress=False)


def test_the_start_and_evaluating_are_neither_compressed_nor_charged():
    plain = result(algorithm="fedadmm")
    squeezed = result(algorithm="fedadmm", compress={"up": TOPK})
    assert squeezed.rounds["objective"][0] == plain.rounds["objective"][0]
    assert squeezed.rounds["bits_up"].tolist() == [8 * 3 * (64 + 4) * k for k in range(5)]
    assert plain.rounds["bits_up"].tolist() == (8 * plain.rounds["bytes_up"]).tolist()
    assert squeezed.rounds["bits_down"].tolist() == plain.rounds["bits_down"].tolist()


def test_simulated_time_follows_the_bytes_that_travel():
    system = {"bandwidth_up": 10.0, "bandwidth_down": 40.0}
    times = {
        name: result(algorithm="fedavg", system=system, compress=table).rounds["simulated_seconds"][-1]
        for name, table in {"up": {"up": TOPK}, "both": {"up": TOPK, "down": "natural"}}.items()
    }
    assert times["up"] == pytest.approx(4 * (math.ceil(3 * 68 / 8) / 10 + 96 / 40))
    assert times["both"] == pytest.approx(4 * (math.ceil(3 * 68 / 8) / 10 + 12 * 12 / 8 / 40))


def test_noise_comes_first_so_that_compression_keeps_the_guarantee():
    algorithm = {"name": "fedepm", "noise": "clipped", "noise_seed": 1}
    sent = result(algorithm=algorithm, compress={"up": TOPK})
    assert sent.attrs["privacy"] == result(algorithm=algorithm).attrs["privacy"]


def test_a_method_with_a_compressor_of_its_own_has_that_in_simulated_time():
    algorithm = {"name": "diana", "compressor": RANDK, "gamma": 0.01}
    run = result(algorithm=algorithm, system={"bandwidth_up": 1.0})
    assert run.rounds["simulated_seconds"][-1] == 4 * (3 * 8 + 8)


REFUSED = [
    (
        {"algorithm": "ef21", "compress": {"up": TOPK}},
        r'compress.up = "topk" is wrong: ef21 needs exact uploads, because',
    ),
    (
        {"algorithm": "feddcd", "compress": {"down": TOPK}},
        r'compress.down = "topk" is wrong: feddcd needs exact downloads',
    ),
    ({"algorithm": "newton", "compress": {"up": TOPK}}, "newton needs exact uploads, because fednl is Newton's method"),
    (
        {"algorithm": "fednl", "compress": {"down": TOPK}},
        r"fednl needs exact downloads, because it compresses Hessians",
    ),
    ({"compress": {"up": {"name": "rank"}}}, r'compress.up = "rank" is wrong: .* for symmetric matrices'),
    ({"compress": {"feedback": "error"}}, r'compress.feedback = "error" is wrong: it is about compress.up'),
    ({"compress": {"up": TOPK}, "masks": {}}, r'compress.up = "topk" cannot be used with masks'),
    (
        {"algorithm": "fedadmm", "compress": {"up": TOPK, "feedback": "none"}},
        r'compress.feedback = "none" is wrong: the server of fedadmm keeps the last upload',
    ),
    ({"compress": {"up": {"name": "topk"}}}, r"compress.up.k is missing"),
    (
        {"compress": {"up": TOPK, "feedback": "ef"}},
        r'compress.feedback = "ef" is wrong: it must be "auto" or "memory" or',
    ),
    ({"algorithm": {"name": "diana", "compressor": "natural"}, "masks": {}}, r"masks cannot be used with diana"),
]


@pytest.mark.parametrize(("tables", "sentence"), REFUSED, ids=[sentence for _, sentence in REFUSED])
def test_what_does_not_go_together_is_refused(tables, sentence):
    with pytest.raises(UserError, match=sentence):
        result(**({"algorithm": "fedavg"} | tables))


@members(CASES_OF_ALL)
def test_a_method_says_whether_its_rounds_use_the_last_uploads_of_all_clients(algorithm, monkeypatch):
    run, used = start(algorithm), []
    send = run.fed._transport.send
    monkeypatch.setattr(run.fed._transport, "send", lambda request: used.append(request.last) or send(request))
    run.rounds(2)
    assert any(used) == algorithm.uses_last()


@pytest.mark.parametrize("feedback", ["error", "none"])
@pytest.mark.parametrize(
    "words",
    [
        *([f"algorithm={name}"] for name in SERVED if Algorithm.member(name, "algorithm")().uses_last()),
        ["algorithm=fedavg", "algorithm.aggregate=all"],
    ],
    ids=lambda words: words[-1],
)
def test_other_feedback_than_memory_is_refused_before_round_one_where_the_server_keeps_uploads(
    words, feedback, tmp_path, capsys
):
    table = ["compress.up=natural", f"compress.feedback={feedback}", "data=digits", "data.clients=8"]
    assert main(["run", *words, *table, "-o", str(tmp_path / "out.h5")]) == 2
    assert f'compress.feedback = "{feedback}" is wrong: the server of {words[0][10:]} keeps' in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_any_feedback_will_do_where_nothing_is_lost_or_kept():
    result(algorithm="fedadmm", compress={"up": "identity", "feedback": "none"})
    result(algorithm={"name": "fedavg", "aggregate": "chosen"}, compress={"up": TOPK, "feedback": "error"})


def test_biased_messages_without_feedback_are_worth_a_note():
    table = {"up": TOPK, "feedback": "none"}
    assert any("the errors of topk do not cancel" in note for note in notes(experiment({"compress": table}), 8))
    assert not any("errors" in note for note in notes(experiment({"compress": table | {"feedback": "memory"}}), 8))
    assert not any("errors" in note for note in notes(experiment({"compress": table | {"up": RANDK}}), 8))


def test_clients_of_a_checkpoint_that_have_not_uploaded_yet_keep_zeros():
    first = {"compute seconds": np.zeros(2)}
    second = {"compute seconds": np.zeros(3), "compress update 0": np.ones((3, 4))}
    assert rows_of("compress update 0", first, [first, second]).tolist() == np.zeros((2, 4)).tolist()
