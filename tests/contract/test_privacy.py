"""What a guarantee withstands: selections that tell of data, lost and late uploads, other clients, and nonsense."""

import random
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest

import mpifed
from mpifed.algorithms.fedepm import FedEPM
from mpifed.algorithms.flame_dp import FlameDP
from mpifed.algorithms.parts.gaussian import Gaussian
from mpifed.core.discrete_noise import laplace_steps, least_epsilon
from mpifed.core.errors import UserError
from mpifed.core.toml import flat
from mpifed.data.sources.public_tables import UnitColumns
from mpifed.experiment.config import experiment
from mpifed.experiment.job import Job
from mpifed.experiment.notes import notes
from mpifed.experiment.run import start
from mpifed.federation.host import Host
from mpifed.mpi.world import World
from tests.helpers.commands import execute, mpirun
from tests.helpers.killed_runs import outlived, struck
from tests.helpers.killed_runs import start as begun

pytest.importorskip("dp_accounting")

EPM = {"name": "fedepm", "noise": "clipped", "epsilon": 0.5, "k0": 2}
FLAME = {"name": "flame-dp", "batch_size": 0, "epochs": 2, "noise_multiplier": 2.0}
TABLE = {
    "rounds": 12,
    "data": {"name": "linreg-noniid", "clients": 5, "features": 4, "least": 6, "most": 9},
    "selection": "all",
    "algorithm": EPM,
    "stop": {"diverged": 0},
}


def uploads(result):
    """Uploads counted so far, after every round."""
    return np.rint(result.rounds["epsilon"] / EPM["epsilon"]).astype(int).tolist()


def neighbours():
    """Twenty clients of one sample each, twice: in the second table the sample of client 0 is another one."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 3))
    other = X.copy()
    other[0] *= 1e3
    y = rng.standard_normal(20)
    return (X, y), (other, y)


def selections(folder, samples, selection, algorithm):
    np.savez(folder / "data.npz", X=samples[0], y=samples[1], sizes=np.ones(20, int))
    data = {"name": "file", "path": str(folder / "data.npz")}
    table = TABLE | {"data": data, "selection": selection, "algorithm": algorithm}
    return mpifed.run(table, progress=None).selection.tolist()


IMPORTANCE = {"name": "importance", "count": 3}


def test_a_selection_by_importance_tells_neighbours_apart_so_a_guarantee_refuses_it(tmp_path):
    """Client 0 of the second table is in every set; without a guarantee that may be seen."""
    one, other = neighbours()
    plain = EPM | {"noise": "released"}
    assert selections(tmp_path, one, IMPORTANCE, plain) != selections(tmp_path, other, IMPORTANCE, plain)
    for algorithm in (EPM, FLAME):
        with pytest.raises(UserError, match=r'^selection = "importance" is wrong: it asks clients for exact numbers'):
            selections(tmp_path, one, IMPORTANCE, algorithm)


@pytest.mark.parametrize("selection", [{"name": "uniform", "count": 3}, IMPORTANCE | {"odds": [1.0] * 19 + [3.0]}])
def test_the_selections_that_the_refusal_advises_do_not(selection, tmp_path):
    one, other = (selections(tmp_path, samples, selection, EPM) for samples in neighbours())
    assert one == other


OWN = """
from mpifed import Selection, Selector

class Own(Selection):
    learns: bool = False

    def selector(self, seed, m, rounds):
        select = lambda round, again: list(range(3))
        if self.learns:
            return Selector(3, select, learn=lambda replies: Selector(3, select))
        return Selector(3, select, batch_size=0)
"""


@pytest.mark.parametrize("learns", [True, False])
def test_a_selection_of_a_users_own_that_asks_clients_for_numbers_is_refused(learns, tmp_path):
    (tmp_path / "own.py").write_text(OWN)
    selection = {"name": f"{tmp_path / 'own.py'}:Own", "learns": learns}
    table = TABLE | {"selection": selection, "rounds": 2}
    with pytest.raises(UserError, match=r'Own" is wrong: it asks clients for exact numbers of their data'):
        mpifed.run(table, path=tmp_path / "out.h5", progress=None)
    assert not (tmp_path / "out.h5").exists()
    assert mpifed.run(table | {"algorithm": {"name": "fedavg"}, "data": {"clients": 5}}, progress=None).cr == 2


class RankDies(Exception):
    """What a call of MPI raises where another rank is dead."""


class Mortal(World):
    """One rank that takes RankDies for the death of another one, and lives on."""

    def survives(self):
        return True

    def lost(self, error):
        return isinstance(error, RankDies)

    def hurt(self):
        pass

    def unhurt(self):
        return True

    def shrink(self):
        return self


def survived(monkeypatch, path, deaths, **settings):
    """The result of a run with --survive in which ranks die in these rounds, after the uploads were drawn."""
    original = FedEPM.round
    waiting = list(deaths)

    def round(self, fed, server):
        done = original(self, fed, server)
        if waiting and fed.round == waiting[0]:
            waiting.pop(0)
            raise RankDies
        return done

    monkeypatch.setattr(FedEPM, "round", round)
    recorder = start(Job(experiment(TABLE | settings), path, survive=True), Mortal())
    return recorder.result()


@pytest.mark.parametrize("on_disk", [True, False])
def test_uploads_that_a_rank_lost_before_the_first_checkpoint_count(on_disk, monkeypatch, tmp_path):
    result = survived(monkeypatch, tmp_path / "out.h5" if on_disk else None, [8, 3])
    assert result.status == "finished"
    assert result.attrs["rounds_redrawn"] == 8 + 3
    assert uploads(result)[1:] == [round + 8 + 3 for round in range(1, 13)]


def test_uploads_that_a_rank_lost_after_a_checkpoint_count_once(monkeypatch, tmp_path):
    """Checkpoints after rounds 3, 6 …; lost are round 2, then 7 and 8, then 8 again."""
    deaths = {"checkpoint": {"every_rounds": 3, "every_seconds": 0.0}}
    result = survived(monkeypatch, tmp_path / "out.h5", [2, 8, 8], **deaths)
    assert result.attrs["rounds_redrawn"] == 2 + 2 + 2
    assert uploads(result)[-1] == 12 + 6


def test_a_checkpoint_of_an_earlier_run_of_that_name_is_not_taken_for_one_of_this_run(monkeypatch, tmp_path):
    """A rank dies before the first round of a run with --force."""
    path = tmp_path / "out.h5"
    mpifed.run(TABLE, path=path)
    deaths = [RankDies]

    joined = Host.join

    def join(host):
        if deaths:
            raise deaths.pop()
        joined(host)

    monkeypatch.setattr(Host, "join", join)
    result = start(Job(experiment(TABLE | {"rounds": 2}), path, True, survive=True), Mortal()).result()
    assert uploads(result) == [0, 1, 2]
    assert "resumed" not in result.attrs


def test_uploads_that_a_real_rank_lost_count(tmp_path):
    """Four ranks under Open MPI, of which one that has clients is killed; no checkpoint is ever written."""
    if "Open MPI" not in execute([mpirun(1)[0], "--version"]).out:
        pytest.skip("this MPI library does not survive a dead rank")
    path = tmp_path / "out.h5"
    table = TABLE | {"rounds": 300, "data": TABLE["data"] | {"clients": 9}, "checkpoint": {"every_seconds": 0.0}}
    words = [f"{key}={str(value).lower()}" for key, value in flat(table).items()]
    process = begun(4, "run", *words, "--survive", "-q", "-o", path, launch=("--with-ft", "ulfm"))
    deadline = time.monotonic() + 60
    while not path.exists() or mpifed.load(path).cr < 3:  # each round is in the file as soon as it is over
        assert time.monotonic() < deadline
        time.sleep(0.05)
    struck(process, path, random.Random(0), 0.0, spared=0)
    outlived(process)
    result = mpifed.load(path)
    assert (result.status, result.attrs["ranks"]) == ("finished", 3)
    assert result.attrs["rounds_redrawn"] > 3
    assert uploads(result)[-1] == 300 + result.attrs["rounds_redrawn"]


def summed(**options):
    return TABLE | {"algorithm": FLAME | {"seen": "sum", "clip": 0.1} | options, "rounds": 3}


def test_a_client_subtracts_its_own_upload_and_sees_a_sum_with_less_noise(monkeypatch):
    """What is left of the noise of m clients after those of k are taken out has the share (m − k)/m of the variance."""
    sent = []
    original = FlameDP.update

    def update(self, f, client, w):
        new, z = original(self, f, client, w)
        sent.append(z - w)
        return new, z

    monkeypatch.setattr(FlameDP, "update", update)
    mpifed.run(summed(clip=1e-3, noise_multiplier=1e3) | {"rounds": 200}, progress=None)
    left = np.array([z[2:].sum(axis=0) for z in sent])  # clients 0 and 1 know their own
    assert left.std() == pytest.approx(np.sqrt(3 / 5), rel=0.1)


@pytest.mark.parametrize(("colluding", "share"), [(0, 1.0), (1, 4 / 5), (3, 2 / 5)])
def test_the_budget_of_sums_is_that_of_what_colluding_clients_see(colluding, share):
    result = mpifed.run(summed(colluding=colluding), progress=None)
    spent = [Gaussian(0.1, FLAME["noise_multiplier"] * np.sqrt(share)).spent(k, 1e-5) for k in range(4)]
    assert result.rounds["epsilon_accounted"] == pytest.approx(spent, rel=1e-12)


def test_the_budget_of_uploads_does_not_depend_on_who_colludes():
    found = [mpifed.run(TABLE | {"rounds": 2, "algorithm": FLAME | {"colluding": k}}, progress=None) for k in (0, 4)]
    assert found[0].rounds["epsilon_accounted"].tolist() == found[1].rounds["epsilon_accounted"].tolist()
    assert "ρ = 0.5 (neighbours" in found[0].attrs["privacy"]


@pytest.mark.parametrize(
    ("colluding", "words"),
    [
        (0, "with ρ = 0.5 to those who are no clients (neighbours"),
        (1, "with ρ = 0.5·m/(m − 1) to any other client, and ρ = 0.5 to those who are no clients (neighbours"),
        (3, "with ρ = 0.5·m/(m − 3) to any 3 other clients together, and ρ = 0.5 to those who are no clients (neigh"),
    ],
)
def test_the_file_says_whom_the_guarantee_of_sums_is_against(colluding, words):
    assert words in mpifed.run(summed(colluding=colluding), progress=None).attrs["privacy"]


def test_more_colluding_clients_than_there_are_others_are_refused():
    with pytest.raises(
        UserError,
        match=r"^algorithm.colluding = 5 is wrong: it must be less than the number of clients, 5, for another one",
    ):
        mpifed.run(summed(colluding=5), progress=None)


@pytest.mark.parametrize("absence", [{"dropout": 0.4}, {"deadline": 1.0, "latency": 0.4, "speed": 20, "jitter": 0.6}])
def test_absent_clients_draw_no_noise_and_spend_nothing_and_a_run_says_so(absence, monkeypatch):
    """In every round as many uploads are drawn as are counted, client by client."""
    drawn = np.zeros(5)
    original = FedEPM.update

    def update(self, f, *args):
        drawn[f.ids] += 1
        return original(self, f, *args)

    def report(self, server, *args):
        counted[:] = server.uploads
        return reported(self, server, *args)

    counted = []
    reported = FedEPM.report
    monkeypatch.setattr(FedEPM, "update", update)
    monkeypatch.setattr(FedEPM, "report", report)
    result = mpifed.run(TABLE | {"system": absence | {"passes": 1.0}}, progress=None)
    assert counted == drawn.tolist()
    assert 0 < drawn.min() < 12
    key = next(iter(absence))
    assert f"system.{key}: clients that do not reply are taken to send nothing" in result.attrs["notes"]
    assert ("who is late follows from the numbers of samples" in result.attrs["notes"]) is (key == "deadline")


class Scaled(UnitColumns, tag="scaled"):
    """A table with a column that all clients scale together."""

    def read(self):
        rng = np.random.default_rng(0)
        return Path("table"), rng.standard_normal((60, 4)), np.arange(60) % 2


@pytest.mark.parametrize("algorithm", [EPM, FLAME])
def test_columns_that_all_clients_scale_together_are_named_where_a_guarantee_is_claimed(algorithm, capsys):
    told = "columns are scaled to unit norm over the samples of all clients, so one sample changes others too: privacy"
    table = TABLE | {"rounds": 1, "algorithm": algorithm, "problem": "logistic"}
    config = experiment(table)
    config = msgspec.structs.replace(config, data=Scaled(clients=5))
    assert told in " ".join(notes(config, 5))
    plain = experiment(table | {"algorithm": {"name": "fedepm"}})
    assert told not in " ".join(notes(msgspec.structs.replace(plain, data=Scaled(clients=5)), 5))


@pytest.mark.parametrize(
    ("algorithm", "sentence"),
    [
        (EPM | {"epsilon": 1e-300}, r"algorithm.epsilon = 1e-300 is wrong: noise on 4 numbers .* at least 7.33e-12$"),
        (EPM | {"epsilon": 7e-12}, r"algorithm.epsilon = 7e-12 is wrong"),
        (
            FLAME | {"noise_multiplier": 1e-200},
            r"algorithm.noise_multiplier = 1e-200 is .* at least 1.83e-12, or",
        ),
        (summed(noise_multiplier=1.9e-12)["algorithm"], r"algorithm.noise_multiplier = 1.9e-12 is wrong"),
        (FLAME | {"noise_multiplier": 1e200}, r"algorithm.noise_multiplier = 1e\+200 is wrong"),
        (
            FLAME | {"clip": 1e-300},
            r"algorithm.noise_multiplier = 2.0 is wrong with algorithm.clip = 1e-300: the",
        ),
    ],
)
def test_nonsense_is_one_sentence_before_round_one(algorithm, sentence, tmp_path):
    with pytest.raises(UserError, match=f"^{sentence}"):
        mpifed.run(TABLE | {"algorithm": algorithm, "rounds": 1}, path=tmp_path / "out.h5", progress=None)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("graph", [{}, {"graph": "ring", "selection": "all"}])
def test_the_least_epsilon_that_the_sentence_names_runs(graph):
    name = "fedepm-graph" if graph else "fedepm"
    table = TABLE | graph | {"algorithm": EPM | {"name": name, "epsilon": 7.33e-12}, "rounds": 2}
    assert mpifed.run(table, progress=None).cr == 2
    with pytest.raises(UserError, match=r"must be at least 7.33e-12$"):
        mpifed.run(table | {"algorithm": EPM | {"name": name, "epsilon": 1e-12}}, progress=None)


def test_noise_of_more_steps_than_its_law_is_exact_for_is_refused():
    assert laplace_steps(np.array([0.3, 5e-9]), 7, least_epsilon(7))[1].max() <= 2.0**50
    for sensitivity, epsilon in ((1.0, 1e-13), (np.inf, 1.0)):
        with pytest.raises(UserError, match=r"has a scale of more than 2\^50 steps of its grid"):
            laplace_steps(np.array([sensitivity]), 7, epsilon)


def test_clipped_vectors_are_shorter_than_the_bound_by_a_billionth():
    rows = np.random.default_rng(0).standard_normal((200, 30))
    size = np.linalg.norm(Gaussian(0.5, 1.0).clipped(rows), axis=1)
    assert size == pytest.approx(0.5 * (1 - 1e-9), rel=1e-14)
