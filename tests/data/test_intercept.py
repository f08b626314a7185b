"""A column of ones beside named features."""

import numpy as np

from mpifed.data.base import WithOnes
from mpifed.data.pool import Pool


def test_the_column_of_ones_has_a_name_where_features_have_some():
    data = Pool(np.zeros((4, 2)), np.zeros(4), None, np.array([1, 3]))
    assert WithOnes(data).features == ()
    data.features = ("age", "sex=m")
    made = WithOnes(data)
    assert made.features == ("age", "sex=m", "intercept")
    assert len(made.features) == made.n == made.rows(0, 2)[0].shape[1]
