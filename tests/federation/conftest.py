"""What tests of several files run on."""

import numpy as np
import pytest
import scipy.sparse as sp


@pytest.fixture(params=[np.asarray, sp.csr_array], ids=["dense", "csr"])
def kind(request):
    """What makes samples dense or sparse."""
    return request.param
