"""What a guarantee of privacy withstands: selections that tell of data, lost and late uploads, other clients, nonsense."""

import random
import time

import numpy as np
import pytest

import mpifed
from mpifed.algorithms.fedepm import FedEPM
from mpifed.core.errors import UserError
from mpifed.experiment.config import experiment
from mpifed.experiment.job import Job
from mpifed.experiment.run import start
from mpifed.core.toml import flat
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
        with pytest.raises(UserError, match='^selection = "importance" is wrong: it asks clients for exact numbers'):
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

    def begin(*args):
        if deaths:
            raise deaths.pop()

    monkeypatch.setattr("mpifed.experiment.run.begin", lambda host, job: (begin(), host.join()))
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
