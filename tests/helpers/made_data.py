"""Settings of every synthetic data set."""

from mpifed.data.base import Data


def build(table, seed=0, dtype="float64"):
    return Data.build(table, "data").load(seed, dtype)
