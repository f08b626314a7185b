"""What a guarantee withstands, refuses, says and counts; and what a run without one must not suggest."""

import itertools
from pathlib import Path

import h5py
import msgspec
import numpy as np
import pytest

import mpifed
from mpifed.algorithms.fedepm import FedEPM
from mpifed.algorithms.parts.noise import GaussianMechanism
from mpifed.core.discrete_noise import laplace_steps, minimum_epsilon
from mpifed.core.errors import UserError
from mpifed.data.sources.public_tables import UnitColumns
from mpifed.engine.listed import list_callbacks, make_features
from mpifed.experiment.config import Job, experiment
from mpifed.experiment.new_result import study_notes
from mpifed.experiment.run import start
from mpifed.features.guarantee import privacy_notes
from mpifed.federation.host import Host
from mpifed.report.summary import show
from tests.helpers.killed_runs import content
from tests.helpers.mortal import Mortal, RankDies

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
def test_the_selections_that_the_refusal_advises_tell_no_neighbours_apart(selection, tmp_path):
    one, other = (selections(tmp_path, samples, selection, EPM) for samples in neighbours())
    assert one == other


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


EVERY_THIRD = {"checkpoint": {"every_rounds": 3, "every_seconds": 0.0}}


@pytest.mark.parametrize(
    ("deaths", "settings", "on_disk", "redrawn"),
    [
        pytest.param([8, 3], {}, True, 8 + 3, marks=pytest.mark.slow),  # before the first checkpoint
        ([8, 3], {}, False, 8 + 3),
        ([2, 8, 8], EVERY_THIRD, True, 2 + 2 + 2),  # lost are round 2, then 7 and 8, then 8 again
    ],
)
def test_uploads_that_a_rank_lost_count_once(deaths, settings, on_disk, redrawn, monkeypatch, tmp_path):
    result = survived(monkeypatch, tmp_path / "out.h5" if on_disk else None, deaths, **settings)
    assert result.status == "finished"
    assert result.attrs["rounds_redrawn"] == redrawn
    assert uploads(result)[-1] == 12 + redrawn


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


def summed(**options):
    return TABLE | {"algorithm": FLAME | {"seen": "sum", "clip": 0.1} | options, "rounds": 3}


ELSE = "ρ = 0.5 to those who are no clients (neighbours"


@pytest.mark.parametrize(
    ("colluding", "share", "words"),
    [
        (0, 1.0, "with ρ = 0.5 to those who are no clients (neighbours"),
        (1, 4 / 5, f"with ρ = 0.5·m/(m − 1) to any other client, and {ELSE}"),
        (3, 2 / 5, f"with ρ = 0.5·m/(m − 3) to any 3 other clients together, and {ELSE}"),
    ],
)
def test_the_budget_of_sums_is_that_of_what_colluding_clients_see_and_the_file_says_so(colluding, share, words):
    """What is left of the noise of m clients after those of k are taken out has the share (m − k)/m of the variance."""
    result = mpifed.run(summed(colluding=colluding), progress=None)
    spent = [
        GaussianMechanism(0.1, FLAME["noise_multiplier"] * np.sqrt(share)).spent_epsilon(k, 1e-5) for k in range(4)
    ]
    assert result.rounds["epsilon_accounted"] == pytest.approx(spent, rel=1e-12)
    assert words in result.attrs["privacy"]


def test_the_budget_of_uploads_does_not_depend_on_who_colludes():
    found = [mpifed.run(TABLE | {"rounds": 2, "algorithm": FLAME | {"colluding": k}}, progress=None) for k in (0, 4)]
    assert found[0].rounds["epsilon_accounted"].tolist() == found[1].rounds["epsilon_accounted"].tolist()
    assert "ρ = 0.5 (neighbours" in found[0].attrs["privacy"]


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
def test_columns_that_all_clients_scale_together_are_named_where_a_guarantee_is_claimed(algorithm):
    told = "columns are scaled to unit norm over the samples of all clients, so one sample changes others too: privacy"
    table = TABLE | {"rounds": 1, "algorithm": algorithm, "problem": "logistic"}
    config = experiment(table)
    config = msgspec.structs.replace(config, data=Scaled(clients=5))
    assert told in " ".join(study_notes(config, 5, list_callbacks(make_features(config))))
    plain = experiment(table | {"algorithm": {"name": "fedepm"}})
    plain = msgspec.structs.replace(plain, data=Scaled(clients=5))
    assert told not in " ".join(study_notes(plain, 5, list_callbacks(make_features(plain))))


@pytest.mark.parametrize(
    ("algorithm", "sentence"),
    [
        (EPM | {"epsilon": 1e-300}, r"algorithm.epsilon = 1e-300 is wrong: noise on 4 numbers .* at least 7.33e-12$"),
        (FLAME | {"noise_multiplier": 1e-200}, r"algorithm.noise_multiplier = 1e-200 is .* at least 1.83e-12, or"),
        (summed(noise_multiplier=1.9e-12)["algorithm"], r"algorithm.noise_multiplier = 1.9e-12 is wrong"),
        (FLAME | {"noise_multiplier": 1e200}, r"algorithm.noise_multiplier = 1e\+200 is wrong"),
        (FLAME | {"clip": 1e-300}, r"algorithm.noise_multiplier = 2.0 is wrong with algorithm.clip = 1e-300: the"),
        (summed(colluding=5)["algorithm"], r"algorithm.colluding = 5 is wrong: it must be less than the number of cli"),
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
    assert laplace_steps(np.array([0.3, 5e-9]), 7, minimum_epsilon(7))[1].max() <= 2.0**50
    for sensitivity, epsilon in ((1.0, 1e-13), (np.inf, 1.0)):
        with pytest.raises(UserError, match=r"has a scale of more than 2\^50 steps of its grid"):
            laplace_steps(np.array([sensitivity]), 7, epsilon)


SEEDED = EPM | {"noise_seed": 3}


def told(**settings):
    return " | ".join(privacy_notes(experiment(TABLE | settings)))


def test_a_run_with_a_guarantee_says_what_it_is_and_which_stop_rules_and_starts_are_none_of_it():
    text = told()
    assert "each upload is ε-private with ε = 0.5 (neighbours: one sample of one client replaced)" in text
    assert "only models and uploads may be published" in text
    assert "cannot be repeated to the bit" in text
    assert "stop." not in text
    assert "start" not in text
    assert "stop.rising looks at the true data: the number of rounds is then not private" in told(
        stop={"rising": True, "diverged": 0}
    )
    assert "stop.gradient and stop.accuracy look at" in told(stop={"gradient": 1e-9, "accuracy": 0.9, "seconds": 9.0})
    assert "stop" not in told(stop={"seconds": 9.0, "diverged": 0})
    assert "the privacy that it spent is not counted here" in told(start="out.h5")


def test_other_noise_is_said_to_guarantee_nothing():
    for name, noise in itertools.product(["fedepm", "sfedavg", "sfedprox"], ["released", "matched"]):
        text = told(algorithm={"name": name, "noise": noise})
        assert text.startswith("no privacy is guaranteed: ")
        assert "|" not in text
    assert told(algorithm={"name": "fedepm", "noise": "none"}) == told(algorithm={"name": "fedavg"}) == ""


def test_the_file_and_the_summary_tell_a_guarantee_from_a_name(tmp_path):
    for name, algorithm in (("kept", TABLE["algorithm"]), ("seeded", SEEDED), ("named", {"name": "fedepm"})):
        result = mpifed.run(TABLE | {"algorithm": algorithm, "rounds": 2}, path=tmp_path / f"{name}.h5")
        guaranteed, text = name == "kept", show(result)
        assert str(result.attrs["privacy"]).startswith("guaranteed: " if guaranteed else "none: ")
        assert ("named ε × uploads (no guarantee)" in text) is not guaranteed
        assert "named ε × uploads" in text
        assert ("no privacy is guaranteed" in " ".join(text.split())) is not guaranteed
        assert ("rounds_redrawn" in result.attrs) is guaranteed
    result = mpifed.run(TABLE | {"algorithm": {"name": "fedavg"}, "rounds": 1})
    assert "privacy" not in result.attrs


class Crash(Exception):
    """What ends a run in the middle."""


def cut_off(monkeypatch, path, rounds, action):
    """Run or resume, and fail in the middle of round ``rounds`` + 1, after its uploads were drawn."""
    original = FedEPM.round

    def round(self, fed, server):
        done = original(self, fed, server)
        if fed.round == rounds + 1:
            raise Crash
        return done

    with monkeypatch.context() as patch:
        patch.setattr(FedEPM, "round", round)
        with pytest.raises(Crash):
            action()
    with h5py.File(path) as file:
        assert len(file["rounds/round"]) == rounds + 1  # every round is in the file as soon as it is over


@pytest.mark.parametrize(
    ("checkpoint", "cuts", "redrawn", "counts"),
    [  # lost are 4, 5 and the round under way; from round 3 again, 4 and that one; past round 6, 7 and 8; then all
        ({"every_rounds": 3}, [5, 4, 7], 3 + 2 + 2, [0, 1, 2, 3, 4 + 5, 5 + 5, 6 + 5, *range(7 + 7, 13 + 7)]),
        ({"every_seconds": 0.0}, [5], 6, [*range(6, 13 + 6)]),
    ],
)
def test_uploads_that_are_drawn_again_count_again_also_after_several_crashes(
    checkpoint, cuts, redrawn, counts, monkeypatch, tmp_path
):
    """Uploads of lost rounds, and of the round under way, may have left the client; others are as a run recorded."""
    path = tmp_path / "out.h5"
    cut_off(monkeypatch, path, cuts[0], lambda: mpifed.run(TABLE | {"checkpoint": checkpoint}, path=path))
    for rounds in cuts[1:]:
        cut_off(monkeypatch, path, rounds, lambda: mpifed.resume(path))
    result = mpifed.resume(path)
    assert (result.status, result.attrs["rounds_redrawn"]) == ("finished", redrawn)
    assert uploads(result) == counts


def test_a_run_that_is_stopped_in_order_goes_on_counting(tmp_path):
    path = tmp_path / "out.h5"
    mpifed.run(TABLE | {"rounds": 4}, path=path)
    result = mpifed.resume(path, rounds=6)
    assert uploads(result) == list(range(7))
    assert result.attrs["rounds_redrawn"] == 0
    assert np.all(np.diff(result.rounds["epsilon_accounted"]) > 0)


def test_noise_that_is_drawn_alike_is_no_second_release(monkeypatch, tmp_path):
    """With a seed the resumed run has the same bits, budget included, as one that was never cut off."""
    table = TABLE | {"algorithm": SEEDED, "checkpoint": {"every_rounds": 3}}
    whole, path = tmp_path / "whole.h5", tmp_path / "out.h5"
    mpifed.run(table, path=whole)
    cut_off(monkeypatch, path, 5, lambda: mpifed.run(table, path=path))
    mpifed.resume(path)
    assert content(path) == content(whole)


def test_a_certificate_is_of_true_data_and_simulated_times_tell_how_many_samples_a_whole_client_has():
    said = privacy_notes(experiment(TABLE | {"algorithm": EPM | {"certify": True}}))
    said += privacy_notes(experiment(TABLE | {"algorithm": FLAME, "system": {"speed": 1.0}}))
    assert "/certificate and snr are of the true data" in " ".join(said)
    assert "so the guarantee for whole clients does not cover" in said[-1]
