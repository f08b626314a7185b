"""Base classes of plug-ins, the parts of a run beyond the plain rounds."""

from collections.abc import Sequence
from typing import ClassVar

from mpifed.core.promises import NO_REASONS, NOTHING_SUPPORTED, Reasons, Supports
from mpifed.data.dataset import Dataset
from mpifed.features.conflict import Conflict
from mpifed.features.settings import Experiment
from mpifed.federation.callback import Callback
from mpifed.federation.local_transform import LocalTransform
from mpifed.federation.participation.selection import Selector
from mpifed.federation.schedule import Schedule
from mpifed.federation.server import Federation
from mpifed.federation.setup import RunSpec
from mpifed.federation.transform import ServerTransform, Transform

Callbacks = Sequence[Callback]


class Plugin:
    """Base class of parts of a run beyond the plain rounds, made only for studies that have them.

    A method that it does not override changes nothing. Its ``conflicts`` say what it does not go with, and when that is
    judged. Then a run calls the methods below in their order, on every rank. A plug-in that is a ``Callback`` too is
    called back itself.

        >>> class Saying(mpifed.extend.Plugin, mpifed.extend.Callback):
        ...     def notes(self):
        ...         return ["this run says so"]
        >>> mpifed.run(plugins=["saying.py:Saying"], algorithm="gd", rounds=1).attrs["notes"]
        'this run says so'
    """

    supports: ClassVar[Supports] = NOTHING_SUPPORTED  # promises that hold with this plug-in
    unsupported: ClassVar[Reasons] = NO_REASONS  # why other promises do not hold, and what would be right
    conflicts: ClassVar[Sequence[Conflict]] = ()  # rows of the table: what it does not go with

    def __init__(self, config: Experiment) -> None:
        self.config = config

    def data(self, data: Dataset) -> Dataset:
        """Return the data of the clients that train."""
        return data

    def prepare(self, setup: RunSpec, data: Dataset) -> RunSpec:
        """Return the setup of server and hosts, once data are loaded; raise UserError where settings conflict."""
        return setup

    def schedule(self, setup: RunSpec, data: Dataset, selector: Selector) -> Schedule | None:
        """Return the schedule of participation and simulated time, or None for that of a plain run."""
        return None

    def transforms(
        self, setup: RunSpec, fed: Federation | None
    ) -> Sequence[Transform | LocalTransform | ServerTransform]:
        """Return the transforms that the server ``fed`` gets, or a host, where ``fed`` is None.

        The server takes those of messages and of its state, a host those of messages and of the clients' f.
        """
        return ()

    def callbacks(self) -> Callbacks:
        """Return the callbacks of the run; rank 0 alone asks, once."""
        return [self] if isinstance(self, Callback) else []
