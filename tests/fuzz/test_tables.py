"""Tables and options at random: what is read has finite numbers and names, all else is one sentence."""

import os

import hypothesis.strategies as st
import numpy as np
from hypothesis import HealthCheck, given, settings

from mpifed.core.errors import UserError
from mpifed.data.dataset import Data
from mpifed.data.info import describe, survey

MANY = int(os.environ.get("MPIFED_FUZZ", "0"))
FEW = settings(max_examples=MANY or 200, suppress_health_check=list(HealthCheck), deadline=None)
DATE = "2020-01-01"
ODD = ["1", "2.5", "m", "", "NA", "?", "1,5", "nan", "inf", "-1", "train", "True", DATE, '"q', "1e400", "\0", "é"]
ODD += ["1,011", "# x", "007"]
KINDS = [["1", "2", "7"], ["0", "1"], ["1.5", "-3"], ["m", "f"], ["m", "f", "?"], ["1", ""], ["train", "test"], ODD]
NAMES = "abcde"
CHOICES = {
    "levels": ["all", "drop-first"],
    "missing": ["drop", "mean", "client-mean"],
    "standardise": ["pooled", "own", "federated"],
    "ones": [True],
    "above": [0, 1.5],
    "header": [True, False],
    "decimal": [","],
    "thousands": [",", ".", " "],
    "comment": ["#"],
    "encoding": ["latin-1", "utf-16"],
    "missing_texts": [["1.0", "m"]],
    "test": [0.3, *NAMES],
    **{key: [*NAMES, 0, -1] for key in ("target", "client", "time", "event")},
    **{key: [["a"], ["b", 0], "c"] for key in ("ignore", "features", "categories")},
}


@st.composite
def tables(draw):
    """The text of a table, mostly one that can be read."""
    n, d = draw(st.integers(1, 5)), draw(st.integers(0, 12))
    mark = draw(st.sampled_from(",;\t| "))
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=n, max_size=n))
    rows = [list(NAMES[:n]), *([draw(st.sampled_from(kind)) for kind in kinds] for _ in range(d))]
    top = draw(st.sampled_from(["", "", "", "# by me\n", f"sep={mark}\n"]))
    return top + "\n".join(map(mark.join, rows[draw(st.integers(0, 5)) == 0 :]))


@st.composite
def options(draw):
    keys = draw(st.lists(st.sampled_from(sorted(CHOICES)), max_size=4, unique=True))
    chosen = {key: draw(st.sampled_from(CHOICES[key])) for key in keys}
    return chosen if "client" in chosen else chosen | {"clients": 1}


@given(text=tables(), chosen=options())
@FEW
def test_a_table_is_read_or_refused_in_one_sentence(text, chosen, tmp_path_factory):
    path = tmp_path_factory.getbasetemp() / "fuzz.csv"
    path.write_text(text, encoding="utf-8")
    try:
        data = Data.build({"name": "file", "path": str(path), **chosen}, "data").load(0, "float64")
        X, _ = data.rows(0, data.m)
        assert X.shape[1] == data.n == len(data.features)
        assert np.isfinite(X).all()
        describe(data, survey(data))
    except UserError as error:
        said = str(error)
    else:
        said = ""
    assert "\n" not in said
