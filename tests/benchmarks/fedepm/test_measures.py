"""The ε of an upload that the tables of FedEPM show, against the numbers of docs/errata.md and the configured ones."""

from __future__ import annotations

import numpy as np
import pytest

import mpifed
from benchmarks.fedepm.measures import epsilon_of_upload

TABLE = {
    "rounds": 15,
    "data": {"name": "gaussian", "clients": 50, "samples": 4, "features": 3},
    "selection": {"name": "all"},
    "stop": {"diverged": 0.0},
}
M50 = (0.02 * 50 + 1) * 0.6e-5  # η of ρ = 0.5


def epsilon(**algorithm):
    return epsilon_of_upload(mpifed.run(TABLE | {"algorithm": {"name": "fedepm", "epsilon": 0.1} | algorithm}))


@pytest.mark.parametrize(("k0", "times"), [(1, 15), (12, 193)])
def test_the_fifteenth_upload_with_printed_steps(k0, times):
    assert np.isclose(epsilon(k0=k0, step_scale="one", eta=M50), 0.1 * times, rtol=0.01)


def test_steps_over_the_number_of_samples_cost_that_much_more_and_matched_noise_has_this_factor():
    released, matched = (epsilon(k0=12, noise=noise, eta=1e-9) for noise in ("released", "matched"))
    assert np.isclose(released, 4 * matched)
    assert np.isclose(matched, 0.1 * (1.001**180 - 1) / 0.001, rtol=1e-3)


def test_clipped_noise_has_the_epsilon_it_names_and_no_noise_has_none():
    pytest.importorskip("dp_accounting")
    assert epsilon(noise="clipped") == 0.1
    assert np.isnan(epsilon(noise="none"))


@pytest.mark.parametrize(("noise", "times"), [("matched", 3), ("released", 3 * 0.05 * 1.001**3 * 0.01 * 4 / 6**0.5)])
def test_sfedavg_takes_k0_steps_from_the_model(noise, times):
    table = {"name": "sfedavg", "k0": 3, "noise": noise, "step": {"name": "sqrt-samples", "a": 0.01}}
    assert np.isclose(epsilon(**table), 0.1 * times)
