"""Uploads as changes: what a method that uploads models is taken to have done to the model received."""

import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.federation.request import CALL, SCORES, Request
from mpifed.federation.setup import Setup

NOWHERE = 0.0  # the origin of uploads that are no models


def uploads(request: Request) -> bool:
    """Whether a request brings uploads of a round: not what is for the record, nor what is asked before round one."""
    return request.key[0] > 0 and request.verb == CALL and request.reduce != "max" and request.method not in SCORES


def origin(request: Request, setup: Setup) -> Array | float:
    """What an upload is a change of: the model (n,) that clients have received, or 0 for what is no model."""
    if setup.algorithm.upload.kind != "model":
        return NOWHERE
    models = (a for a in request.args if np.shape(a) == setup.start.shape)
    return next(models, NOWHERE)


def vectors(reply: object, request: Request, setup: Setup) -> Array:
    """The reply of c clients as what it must be: (c, n)."""
    if type(reply) is not np.ndarray or reply.shape[1:] != setup.start.shape:
        raise UserError(
            f"the client method {request.method} of {setup.algorithm.label()} uploads something else than one vector "
            f"of n = {setup.start.size} numbers, so neither attack nor robust can be used with it"
        )
    return reply
