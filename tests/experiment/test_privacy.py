"""What a run with a guarantee refuses, says and counts; and what one without must not suggest."""

import h5py
import numpy as np
import pytest

import mpifed
from mpifed.algorithms.fedepm import FedEPM
from mpifed.experiment.config import experiment
from mpifed.experiment.notes import privacy_notes
from mpifed.report.summary import show
from tests.helpers.killed_runs import content

pytest.importorskip("dp_accounting")

TABLE = {
    "rounds": 12,
    "data": {"name": "linreg-noniid", "clients": 5, "features": 4, "least": 6, "most": 9},
    "selection": {"name": "all"},
    "algorithm": {"name": "fedepm", "noise": "clipped", "epsilon": 0.5, "k0": 2},
}
SEEDED = TABLE["algorithm"] | {"noise_seed": 3}


def told(**settings):
    return " | ".join(privacy_notes(experiment(TABLE | settings)))


def test_a_run_with_a_guarantee_says_what_it_is_and_which_stop_rules_and_starts_are_none_of_it():
    text = told()
    assert "each upload is ε-private with ε = 0.5 (neighbours: one sample of one client replaced)" in text
    assert "only models and uploads may be published" in text
    assert "cannot be repeated to the bit" in text
    assert "stop." not in text
    assert "start" not in text
    assert "stop.rising looks at the true data: the number of rounds is then not private" in told(stop={"rising": True})
    assert "stop.gradient and stop.accuracy look at" in told(stop={"gradient": 1e-9, "accuracy": 0.9, "seconds": 9.0})
    assert "stop" not in told(stop={"seconds": 9.0})
    assert "the privacy that it spent is not counted here" in told(start="out.h5")


@pytest.mark.parametrize("noise", ["released", "matched"])
@pytest.mark.parametrize("name", ["fedepm", "sfedavg", "sfedprox"])
def test_other_noise_is_said_to_guarantee_nothing(name, noise):
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


def spent(result):
    """Uploads counted so far, after every round."""
    return np.rint(result.rounds["epsilon"] / 0.5).astype(int).tolist()


def test_uploads_that_are_drawn_again_count_again_also_after_several_crashes(monkeypatch, tmp_path):
    """Checkpoints after rounds 3, 6 …; uploads of lost rounds, and of the round under way, may have left the client."""
    path, table = tmp_path / "out.h5", TABLE | {"checkpoint": {"every_rounds": 3}}
    cut_off(monkeypatch, path, 5, lambda: mpifed.run(table, path=path))  # lost: 4, 5 and the one under way
    cut_off(monkeypatch, path, 4, lambda: mpifed.resume(path))  # from round 3 again; lost: 4 and the one under way
    cut_off(monkeypatch, path, 7, lambda: mpifed.resume(path))  # past the checkpoint of round 6; lost: 7 and 8
    result = mpifed.resume(path)
    assert result.status == "finished"
    assert result.attrs["rounds_redrawn"] == 3 + 2 + 2
    counts = spent(result)
    assert counts[:4] == [0, 1, 2, 3]
    assert counts[4:7] == [4 + 5, 5 + 5, 6 + 5]  # as the third run recorded them
    assert counts[7:] == [round + 7 for round in range(7, 13)]


def test_without_a_checkpoint_all_rounds_are_drawn_again(monkeypatch, tmp_path):
    """1 to 5 and the one under way."""
    path = tmp_path / "out.h5"
    cut_off(monkeypatch, path, 5, lambda: mpifed.run(TABLE | {"checkpoint": {"every_seconds": 0.0}}, path=path))
    result = mpifed.resume(path)
    assert result.attrs["rounds_redrawn"] == 6
    assert spent(result)[1:] == [round + 6 for round in range(1, 13)]


def test_a_run_that_is_stopped_in_order_goes_on_counting(tmp_path):
    path = tmp_path / "out.h5"
    mpifed.run(TABLE | {"rounds": 4}, path=path)
    result = mpifed.resume(path, rounds=6)
    assert spent(result) == list(range(7))
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
