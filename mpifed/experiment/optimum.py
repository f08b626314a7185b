"""Studies whose clients all live in this process: the federation before round one, and the certificate."""

import msgspec
import numpy as np

from mpifed.core.errors import UserError
from mpifed.core.typing import Array
from mpifed.data.cache import Cache
from mpifed.data.dataset import Dataset
from mpifed.experiment.housing import prepare_in_process
from mpifed.experiment.rehearsed_work import count_work
from mpifed.features.certificate.constants import compute_constants, make_certificate
from mpifed.features.certificate.least_time import compute_setting
from mpifed.features.penalty.feature import PenalisedObjective
from mpifed.features.settings import Experiment
from mpifed.federation.server import Federation
from mpifed.federation.transport import InProcess
from mpifed.theory.least_time import LeastTimeInputs
from mpifed.theory.statements import Certificate, Constants


def build_local_federation(config: Experiment, cache: Cache | None = None) -> tuple[Federation, Dataset]:
    """Build the federation of an experiment in this process, in double precision, before round one, with its data.

    UserError for settings that do not go together, as before a run.
    """
    parts = prepare_in_process(msgspec.structs.replace(config, dtype="float64"), cache, count_work)
    host = parts.host
    assert host is not None
    # evaluate f itself, whatever function a method computes with
    host.local_transforms += host.evaluation.local_transforms
    host.evaluation.local_transforms.clear()
    host.join()
    fed = Federation(InProcess(host), host.setup, parts.selector, parts.data.totals)
    for feature in parts.features:
        if isinstance(feature, PenalisedObjective):
            for transform in feature.transforms(host.setup, fed):
                fed.add_transform(transform)
    return fed, parts.data


def compute_certificate(
    config: Experiment, x: Array | None = None, rounds: int | None = None, cache: Cache | None = None
) -> Certificate:
    """Compute the certificate of an experiment, or of its run with final model x after ``rounds`` rounds."""
    fed, data = build_local_federation(config, cache)
    if x is not None and len(x) != fed.n:
        raise UserError(f"the data have changed: the result has {len(x)} parameters, and now there are {fed.n}")
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return make_certificate(
            config, compute_constants(config, fed, data.sizes, config.rounds if rounds is None else rounds, x)
        )


def least_time_setting(
    config: Experiment, constants: Constants, x: Array | None = None, cache: Cache | None = None
) -> LeastTimeInputs:
    """Return the setting of the least-time bounds for an asynchronous study, or its run with final model x."""
    fed, data = build_local_federation(config, cache)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        return compute_setting(config, fed, data, constants, x)
