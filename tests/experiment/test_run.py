"""One way to start a run, its rounds, their progress and their end; a world of one rank that agrees with itself."""

import io
import re
from itertools import pairwise

import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.core.processor import choose_block_size
from mpifed.experiment import progress
from mpifed.experiment.config import Job, experiment
from mpifed.experiment.housing import add_host
from mpifed.experiment.prepare import prepare
from mpifed.experiment.progress import Progress
from mpifed.experiment.resume import resume
from mpifed.experiment.run import build_experiment, start
from mpifed.mpi.world import World
from tests.experiment.conftest import run, status
from tests.helpers.commands import mpifed

STUDY = {"data": {"clients": 6, "features": 5}, "rounds": 4, "stop": {"gradient": 0.0}}


def test_a_job_gives_a_recorder_and_goes_on_from_its_checkpoint(tmp_path):
    """Also with blocks of another size, which is recorded."""
    path, whole = tmp_path / "out.h5", start(Job(experiment(STUDY | {"rounds": 7}))).result()
    assert (whole.attrs["block_bytes"], whole.attrs["block_bytes_reason"]) == choose_block_size()
    short = start(Job(experiment(STUDY | {"block_bytes": 100}), path))
    assert short.ended == ("finished", "rounds: 4")
    attrs = short.result().attrs
    assert (attrs["block_bytes"], attrs["block_bytes_reason"]) == (100, "the experiment says so")
    table, saved, before = resume(path, ["rounds=7", "block_bytes=1000"])
    longer = start(Job(experiment(table), path, True, saved, before)).result()
    assert longer.attrs["block_bytes"] == 1000
    assert longer.x.tobytes() == whole.x.tobytes()
    assert np.array_equal(longer.rounds["objective"], whole.rounds["objective"])


def test_ranks_that_exchange_vectors_with_each_other_cannot_survive_a_dead_one(monkeypatch):
    monkeypatch.setattr(World, "is_fault_tolerant", lambda world: True)
    with pytest.raises(UserError, match="--survive cannot be used with graph"):
        start(Job(experiment(STUDY | {"algorithm": "dgd", "graph": "ring"}), survive=True))


NINE = {"data": {"clients": 9, "features": 4}, "dtype": "float32"}


def hosted(job, rank):
    """What a rank of four has before round one."""
    parts = prepare(job, 4)
    return add_host(parts, job, (parts.cuts[rank - 1], parts.cuts[rank]), "numpy") if rank else parts


def test_clients_live_on_the_ranks_above_zero_and_without_mpi_one_host_has_them_all():
    job = Job(experiment(NINE))
    parts = [hosted(job, rank) for rank in range(4)]
    cuts = parts[0].cuts
    assert parts[0].host is None
    assert [(part.host.lo, part.host.hi) for part in parts[1:]] == list(pairwise(cuts))
    assert (cuts[0], cuts[-1]) == (0, 9)
    parts = add_host(prepare(job, 1), job, (0, 9), "numpy")
    assert (parts.host.lo, parts.host.hi, parts.setup.m) == (0, 9, 9)
    assert parts.setup.start.dtype == np.float32
    with pytest.raises(UserError, match=r"^11 ranks are too many for 9 clients: start at most 10"):
        prepare(job, 11)


def test_a_world_of_one_rank_agrees_with_itself_and_a_mistake_is_one_sentence_and_other_errors_pass():
    world = World()
    assert world.first
    assert (world.size, world.library, world.share("value"), world.collect(3)) == (1, "none", "value", [3])
    with world.agreeing():
        config = build_experiment(STUDY, world)
    assert config.rounds == 4
    with pytest.raises(UserError, match=r"^no such key$"), world.agreeing():
        raise UserError("no such key")
    with pytest.raises(UserError, match=r"^this run does not fit in the memory of rank 0: 9 GB$"), world.agreeing():
        raise MemoryError("9 GB")
    with pytest.raises(ZeroDivisionError), world.agreeing():
        1 / 0  # noqa: B018


def test_a_run_asks_whether_a_round_fits_in_memory_and_not_a_model(tmp_path, monkeypatch):
    """A line of 24 bytes may name so many features that a run took gigabytes and minutes before it failed."""
    (tmp_path / "x.svm").write_text("1 1:1 9000000:2\n0 1:1\n")
    data = {"name": "file", "path": str(tmp_path / "x.svm"), "clients": 2}
    job = Job(experiment({"data": data, "algorithm": "gd", "rounds": 1}))
    monkeypatch.setattr("mpifed.core.memory.free", lambda: 300 * 10**6)  # a model takes 72 MB
    with pytest.raises(UserError, match=r"^a round, which has at least 5 models of 9,000,000 numbers .* 360 MB of mem"):
        prepare(job, 1)
    monkeypatch.setattr("mpifed.core.memory.free", lambda: 400 * 10**6)
    assert prepare(job, 1).setup.start.size == 9_000_000


@pytest.mark.parametrize("ranks", [None, pytest.param(2, marks=pytest.mark.slow)])
def test_what_was_done_with_labels_is_said_once_before_the_rounds(ranks, tmp_path):
    np.savez(tmp_path / "x.npz", X=np.eye(6), y=np.array(["no", "yes"] * 3))
    np.savez(tmp_path / "shifted.npz", X=np.eye(6), y=np.array([1, 2, 3] * 2))
    text = "labels are text, numbered in sorted order: 'no' is 0, 'yes' is 1"
    for name, problem, note in (("x", "logistic", text), ("shifted", "softmax", "labels 1 … 3 are numbered 0 … 2")):
        words = ["data=file", f"data.path={tmp_path / name}.npz", "data.clients=3", f"problem={problem}", "rounds=1"]
        done = mpifed("run", *words, "-o", tmp_path / f"{name}.h5", ranks=ranks)
        assert done.code == 0
        assert done.err.count(f"mpifed: {note}\n") == 1
        assert mpifed("run", *words, "-q", "-o", tmp_path / "quiet.h5", "--force").err == ""


LOST = r"the (reply|loss or gradient) of client \d+ is not finite in round \d, method \w+: .*"


@pytest.mark.parametrize(
    ("a", "words", "sentence"),
    [("1e200", ["stop.diverged=0"], LOST), ("3.0", [], r"f diverges: \S+ in round \d after \S+ at the start, so")],
    ids=["not finite", "diverges"],
)
def test_divergence_ends_the_run_unless_told_to_go_on_and_numbers_that_are_not_finite_do(a, words, sentence, tmp_path):
    path, step = tmp_path / "out.h5", f"algorithm.step={{name='constant',a={a}}}"
    study = ["run", "algorithm=fedavg", step, "data.clients=13", "rounds=9", "-q", "-o", path, *words]
    done = run(*study, code=1)
    assert re.search(rf"^mpifed: {sentence} look at algorithm\.step", done.err, re.M), done.err
    assert "Warning" not in done.err
    assert status(path)[0] == "failed"
    if not words:
        run(*study, "stop.diverged=0", "--force")


def test_models_are_stored_after_every_so_many_rounds_and_the_last():
    study = {"algorithm": "fedavg", "data": {"clients": 13}, "stop": {"gradient": 0.0}}
    models = start(Job(experiment(study | {"rounds": 7, "record": {"models": 3}}))).result().models
    assert models["round"].tolist() == [0, 3, 6, 7]
    for round, x in zip(models["round"], models["x"], strict=True):
        short = start(Job(experiment(study | {"rounds": int(round)}))).result()
        assert short.x.tobytes() == x.tobytes()
        assert len(short.models["round"]) == 0


ROW = {"objective": 0.5, "grad_norm_sq": 1e-3}


@pytest.fixture
def always(monkeypatch):
    for name in ("SECONDS_TERMINAL", "SECONDS_LOG"):
        monkeypatch.setattr(progress, name, 0.0)


def test_a_log_has_a_line_a_round_and_a_terminal_one_line_that_is_cleared_at_the_end(always):
    log = io.StringIO()
    shown = Progress(log)
    shown.show(1, 4, ROW)
    shown.show(2, 4, {})  # a round without evaluation repeats the last values
    shown.close()
    lines = log.getvalue().splitlines()
    assert len(lines) == 2
    for k, line in enumerate(lines, 1):
        assert line.startswith(f"round {k} of at most 4  f 0.5  ‖∇f‖² 1.00e-03  at most ")

    terminal = io.StringIO()
    terminal.isatty = lambda: True
    shown = Progress(terminal)
    shown.show(1, 4, ROW)
    shown.show(2, 4, ROW)
    shown.close()
    assert "\n" not in terminal.getvalue()
    assert terminal.getvalue().count("\r") == 3
    assert terminal.getvalue().endswith("\r\033[K")


def test_the_time_left_of_a_resumed_run_counts_its_own_rounds(always, monkeypatch):
    clock = iter([100.0, 110.0, 120.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    log = io.StringIO()
    shown = Progress(log)
    shown.show(51, 60, ROW)  # the first ten seconds had one round, the first twenty have two
    shown.show(52, 60, ROW)
    assert [line.rpartition("at most ")[2] for line in log.getvalue().splitlines()] == ["90 s left", "80 s left"]


def test_without_a_stream_nothing_is_written_and_otherwise_not_too_often(capsys):
    log = io.StringIO()
    for shown in (Progress(log), Progress(None)):
        for k in range(100):
            shown.show(k, 100, ROW)
        shown.close()
    shown.note("x")
    assert (log.getvalue(), capsys.readouterr()) == ("", ("", ""))
