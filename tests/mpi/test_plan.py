"""Plans: a request becomes one message, and comes out of it."""

import numpy as np
import pytest

from mpifed.mpi.plan import Plan, form
from tests.helpers.requests import REQUESTS, equal


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda request: request.method)
def test_a_message_survives_the_journey(request_):
    there, here = (Plan(3, form(request_)) for _ in range(2))
    apart = there.write(request_)
    here.message[:] = there.message
    here.place(np.empty(here.room, np.uint8))
    for place, array in zip(here.apart, apart, strict=True):
        place[...] = array
    assert equal(here.read(), request_)
