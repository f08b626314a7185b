"""Uploads as changes of the model received, for methods that upload models or vectors."""

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.federation.request import CALL, Request
from mpifed.federation.setup import RunSpec
from mpifed.federation.transform import MessageCost, carries_uploads

NOWHERE = 0.0  # the origin of uploads that are no models


def brings_uploads(request: Request) -> bool:
    """Return whether a request brings uploads of a round, not evaluations, scores or values before round one."""
    return request.request_type == CALL and carries_uploads(request, MessageCost())


def find_origin(request: Request, setup: RunSpec) -> Array | float:
    """Return the received model (n,) of which uploads are changes, or 0 for uploads that are no models."""
    if setup.algorithm.upload.content != "model":
        return NOWHERE
    x = request.find_model(setup.shared_start.shape)
    return NOWHERE if x is None else x


def check_vectors(reply: object, request: Request, setup: RunSpec) -> Array:
    """Return the reply of c clients (c, n); raise UserError where it is anything else than one vector each."""
    if type(reply) is not np.ndarray or reply.shape[1:] != setup.shared_start.shape:
        raise UserError(
            f"the client method {request.method} of {setup.algorithm.label()} uploads something else than one vector "
            f"of n = {setup.shared_start.size} numbers, so neither attack nor robust can be used with it"
        )
    return reply
