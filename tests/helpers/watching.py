"""What client methods get and give back, looked at while a run is at work."""

import numpy as np


class Watch:
    """An algorithm whose client methods get arrays that cannot be written to, and whose results have their types noted.

    ``models``: the types of arrays with a row a client. ``kept``: whether states kept their shapes and types.
    """

    def __init__(self, algorithm):
        self.algorithm = algorithm
        self.models = set()
        self.kept = True

    def __getattr__(self, name):
        method = getattr(self.algorithm, name)

        def watched(f, client, *args):
            f.block.A.setflags(write=False)
            f.block.b.setflags(write=False)
            found = method(f, type(client)(*map(frozen, client)), *map(frozen, args))
            if not isinstance(found, tuple) or type(found[0]) is not type(client):
                return found  # of an evaluation: no state
            new, reply = found
            for a, b in zip(client, new, strict=True):
                self.kept &= a.shape == b.shape and (a.dtype == b.dtype or a.ndim == 1)
            parts = reply if isinstance(reply, tuple) else (reply,)
            self.models |= {a.dtype for a in (*new, *parts) if a is not None and a.ndim > 1}
            return found

        return watched


def frozen(value):
    """An array that cannot be written to, or what is none."""
    if not isinstance(value, np.ndarray):
        return value
    value = value.copy()
    value.setflags(write=False)
    return value
