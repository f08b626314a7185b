"""A study whose clients all live in this process: its federation before round one, and its certificate."""

import msgspec
import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.data.cache import Cache
from mpifed.data.dataset import Dataset
from mpifed.experiment.housing import gathered
from mpifed.experiment.rehearsed_work import counted_work
from mpifed.features.certificate.constants import certified, known
from mpifed.features.certificate.least_time import setting
from mpifed.features.penalty.feature import Penalised
from mpifed.features.settings import Experiment
from mpifed.federation.server import Federation
from mpifed.federation.transport import InProcess
from mpifed.theory.least_time import Setting
from mpifed.theory.statements import Certificate, Constants


def alone(config: Experiment, cache: Cache | None = None) -> tuple[Federation, Dataset]:
    """The federation of an experiment in this process, in double precision, before its first round, and its data.

    UserError for what does not go together, as before a run.
    """
    parts = gathered(msgspec.structs.replace(config, dtype="float64"), cache, counted_work)
    host = parts.host
    assert host is not None
    # f itself, whatever a method computes with
    host.views += host.evaluation.views
    host.evaluation.views.clear()
    host.join()
    fed = Federation(InProcess(host), host.setup, parts.selector, parts.data.totals)
    for feature in parts.features:
        if isinstance(feature, Penalised):
            feature.server(fed)
    return fed, parts.data


def study(
    config: Experiment, x: Array | None = None, rounds: int | None = None, cache: Cache | None = None
) -> Certificate:
    """The certificate of an experiment, computed in this process, or of its run with final model x after ``rounds``."""
    fed, data = alone(config, cache)
    if x is not None and len(x) != fed.n:
        raise UserError(f"the data have changed: the result has {len(x)} parameters, and now there are {fed.n}")
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return certified(config, known(config, fed, data.sizes, config.rounds if rounds is None else rounds, x))


def least_time(config: Experiment, constants: Constants, x: Array | None = None, cache: Cache | None = None) -> Setting:
    """What the bounds of the least time speak of, for an asynchronous study, or its run with final model x."""
    fed, data = alone(config, cache)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return setting(config, fed, data, constants, x)
