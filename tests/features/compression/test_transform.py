"""[compress]: what arrives, what both sides keep, and what is charged."""

import math

import numpy as np
import pytest

import mpifed
from mpifed.experiment.checkpoint import rows_or_zeros
from mpifed.experiment.config import experiment
from mpifed.features.compression.feature import Compression
from mpifed.federation.participation.selection import All, UniformSelection
from tests.helpers.algorithm_cases import CASES, SERVED, SETTINGS, start
from tests.helpers.algorithm_runs import M, N, Run, build, same

TOPK = {"name": "topk", "k": 3}
RANDK = {"name": "randk", "k": 3}
GAMMA = 0.02
STEP = {"step": {"name": "constant", "a": GAMMA}}
SPARSE = 3 * (64 + 4)  # bits of three numbers and their places among ten
SLOW = pytest.mark.slow


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


@pytest.mark.parametrize(("down", "share"), [(False, 1.0), (True, 0.4)])
@pytest.mark.parametrize("feedback", ["memory", "error", "none"])
def test_messages_are_those_of_a_plain_loop_over_clients(feedback, down, share):
    table = {"up": TOPK, "feedback": feedback} | ({"down": TOPK} if down else {})
    compressed, plain = (
        Run(build("fedavg", {"k0": 1, **STEP}), selection=UniformSelection(share=share), compress=one)
        for one in (table, None)
    )
    models = compressed.rounds(15)
    assert np.allclose(models, fedavg(compressed, feedback, 15, down), rtol=1e-10, atol=1e-12)
    assert not np.allclose(models, plain.rounds(15), rtol=1e-3, atol=1e-4)


def test_gradient_descent_with_memory_is_ef21_and_without_feedback_it_ends_elsewhere():
    one = Run(build("gd", {"gamma": GAMMA}), selection=All(), compress={"up": TOPK})
    other = Run(build("ef21", {"gamma": GAMMA, "compressor": TOPK}), selection=All())
    assert np.allclose(one.rounds(40), other.rounds(40), rtol=1e-12, atol=1e-13)
    assert one.fed.ledger.bits_up == other.fed.ledger.bits_up
    run = Run(build("gd", {"gamma": 0.1}), selection=All(), compress={"up": TOPK, "feedback": "none"})
    run.rounds(300)
    assert run.measure()[1] > 1e-3


OTHERS = [pytest.param(name, marks=SLOW) for name in SERVED if name not in ("fedavg", "scaffold", "flame-dp")]


@pytest.mark.parametrize("name", ["fedavg", "scaffold", *OTHERS])
def test_identity_changes_no_bit_and_no_charge(name):
    tables = (None, {"up": "identity", "down": "identity"})
    plain, same_thing = (start(build(name, SETTINGS.get(name, {})), compress=table) for table in tables)
    assert plain.rounds(3).tobytes() == same_thing.rounds(3).tobytes()
    assert same(plain.states(), same_thing.states())
    assert vars(plain.fed.ledger) == vars(same_thing.fed.ledger)


EXACT = [  # methods that end at the minimiser; the last two keep errors, the others memory
    pytest.param("fedgia", {}, 1.0, marks=SLOW),
    pytest.param("fedadmm", {}, 0.4, marks=SLOW),
    ("gd", {"gamma": 0.2}, 1.0),
    pytest.param("feddyn", {"alpha": 1.0, "step": {"name": "constant", "a": 0.05}}, 0.4, marks=SLOW),
    ("scaffold", {"step": {"name": "constant", "a": 0.05}}, 1.0),
]


@pytest.mark.parametrize("compressor", [TOPK, pytest.param({"name": "randk", "k": 5}, marks=SLOW)], ids=str)
@pytest.mark.parametrize(("name", "options", "share"), EXACT)
def test_methods_that_end_at_the_minimiser_do_so_with_compressed_uploads(name, options, share, compressor):
    run = Run(build(name, options), selection=UniformSelection(share=share), compress={"up": compressor})
    before = run.measure()[1]
    run.rounds(200)
    assert run.measure()[1] < 1e-3 * before


@pytest.mark.parametrize(
    ("name", "options", "compressor"),
    [
        ("feddcd", {"scaling": "common"}, TOPK),
        ("feddcd", {"scaling": "own"}, "natural"),
        ("accfeddcd", {"scaling": "own"}, RANDK),
        ("proxskip", {"p": 0.3}, TOPK),
    ],
    ids=str,
)
def test_dual_variables_add_up_to_zero_because_clients_know_what_arrived(name, options, compressor):
    run = start(build(name, options), selection=UniformSelection(share=0.4), compress={"up": compressor})
    run.rounds(30)
    y = run.states().h if name == "proxskip" else run.states().y
    assert np.abs(y).max() > 1e-2
    assert np.abs(y.sum(axis=0)).max() < 1e-10


def test_feddyn_keeps_the_mean_of_its_linear_terms_but_for_what_is_not_sent_yet():
    """h = mean h_i + α mean e_i: errors do not pile up at the server."""
    run = Run(build("feddyn", {"alpha": 1.0, **STEP}), compress={"up": TOPK})
    run.rounds(30)
    (host,) = run.hosts
    error = host.transforms["compress"].client_state["update 0"][host.slot].mean(axis=0)
    assert np.abs(error).max() > 1e-4
    assert np.allclose(run.server.h, run.states().h.mean(axis=0) + error, atol=1e-12)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_single_numbers_travel_as_they_are_both_ways(dtype):
    """The penalty of adaptive FedGiA goes down, and an error comes up."""
    size, told = np.dtype(dtype).itemsize, []
    run = Run(build("fedgia", {"adaptive": True}), compress={"up": TOPK, "down": TOPK}, dtype=dtype)
    run.rounds(5)
    assert run.fed.ledger.bits_up == run.fed.ledger.bits_down == 5 * M * (3 * (8 * size + 4) + 8 * size)
    handle, sigma = run.hosts[0].handle, run.server.sigma
    run.hosts[0].handle = lambda request: told.append(request.args[1]) or handle(request)
    run.rounds(1)
    assert told == [sigma]


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_a_message_is_charged_to_the_bit_and_downloads_go_to_all_clients(dtype):
    size, chosen = np.dtype(dtype).itemsize, math.ceil(0.4 * M)
    run = Run(build("fedavg", STEP), compress={"up": TOPK, "down": "natural"}, dtype=dtype)
    run.rounds(5)
    ledger, up, down = run.fed.ledger, 3 * (8 * size + 4), {8: 12, 4: 9}[size] * N
    assert (ledger.bits_up, ledger.bits_down) == (5 * chosen * up, 5 * M * down)
    assert (ledger.bytes_up, ledger.bytes_down) == (5 * chosen * -(-up // 8), 5 * M * -(-down // 8))
    assert (ledger.exchanges, ledger.uploads, ledger.downloads) == (5, 5 * chosen, 5 * M)


@pytest.mark.parametrize(
    ("name", "options", "bits"), [("scaffold", {}, 2 * SPARSE), ("fedopt", {"server": "fedexp"}, SPARSE + 64)]
)
def test_every_array_of_a_reply_is_a_message(name, options, bits):
    """FedExP uploads the number ‖w_i − x‖² too, which travels as it is."""
    run = Run(build(name, options | STEP), selection=All(), compress={"up": TOPK})
    run.rounds(2)
    assert run.fed.ledger.bits_up == 2 * M * bits


def result(**tables):
    data = {"name": "gaussian", "clients": 8, "samples": 20, "features": 12}
    return mpifed.run({"data": data, "rounds": 4, "selection": "all"} | tables, progress=False)


def test_the_start_and_evaluating_are_neither_compressed_nor_charged():
    plain, squeezed = (result(algorithm="fedadmm", compress=table) for table in (None, {"up": TOPK}))
    assert squeezed.rounds["objective"][0] == plain.rounds["objective"][0]
    assert squeezed.rounds["bits_up"].tolist() == [8 * SPARSE * k for k in range(5)]
    assert plain.rounds["bits_up"].tolist() == (8 * plain.rounds["bytes_up"]).tolist()
    assert squeezed.rounds["bits_down"].tolist() == plain.rounds["bits_down"].tolist()


def test_clients_know_the_model_that_a_run_starts_from_before_the_first_message(tmp_path):
    np.savez(tmp_path / "start.npz", x=np.arange(1.0, 13.0))
    warm = {"algorithm": {"name": "gd"}, "start": str(tmp_path / "start.npz"), "rounds": 1}
    plain, squeezed = (result(**warm, compress=table) for table in (None, {"down": TOPK}))
    assert squeezed.x.tobytes() == plain.x.tobytes()


@pytest.mark.parametrize(
    ("algorithm", "table", "seconds"),
    [
        ("fedavg", {"up": TOPK}, math.ceil(3 * 68 / 8) / 10 + 96 / 40),
        ("fedavg", {"up": TOPK, "down": "natural"}, math.ceil(3 * 68 / 8) / 10 + 12 * 12 / 8 / 40),
        # two vectors each way are two messages
        ("scaffold", {"up": TOPK, "down": "natural"}, 2 * math.ceil(3 * 68 / 8) / 10 + 2 * math.ceil(12 * 12 / 8) / 40),
        ({"name": "diana", "compressor": RANDK, "gamma": 0.01}, None, (3 * 8 + 8) / 10 + 96 / 40),  # its own
    ],
)
def test_simulated_time_follows_the_bytes_that_travel(algorithm, table, seconds):
    system = {"bandwidth_up": 10.0, "bandwidth_down": 40.0}
    run = result(algorithm=algorithm, system=system, compress=table)
    assert run.rounds["simulated_seconds"][-1] == pytest.approx(4 * seconds)


@SLOW
def test_noise_comes_first_so_that_compression_keeps_the_guarantee():
    noisy = {"algorithm": {"name": "fedepm", "noise": "clipped", "noise_seed": 1}}
    assert result(**noisy, compress={"up": TOPK}).attrs["privacy"] == result(**noisy).attrs["privacy"]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_method_says_whether_its_rounds_use_the_last_uploads_of_all_clients(case, monkeypatch):
    algorithm, used = build(*case), []
    run = start(algorithm)
    send = run.fed._transport.send
    monkeypatch.setattr(run.fed._transport, "send", lambda request: used.append(request.last) or send(request))
    run.rounds(2)
    assert any(used) == bool(algorithm.upload.last(algorithm))


def test_biased_messages_without_feedback_are_worth_a_note():
    for feedback, up, worth in (("none", TOPK, True), ("memory", TOPK, False), ("none", RANDK, False)):
        told = Compression(experiment({"compress": {"up": up, "feedback": feedback}})).notes()
        assert any("the errors of topk do not cancel" in note for note in told) == worth


def test_clients_of_a_checkpoint_that_have_not_uploaded_yet_keep_zeros():
    first = {"compute seconds": np.zeros(2)}
    second = {"compute seconds": np.zeros(3), "compress update 0": np.ones((3, 4))}
    assert rows_or_zeros("compress update 0", first, [first, second]).tolist() == np.zeros((2, 4)).tolist()
