"""What a feature is: a part of a run beyond the plain rounds."""

from collections.abc import Sequence
from typing import ClassVar

from mpifed.data.base import Dataset
from mpifed.features.rule import Counted, Rule
from mpifed.features.settings import Experiment
from mpifed.federation.server import Federation
from mpifed.federation.setup import Setup


class Feature:
    """A part of a run beyond the plain rounds, made only for studies that have it. What it does not override is left
    as it is.

    Its rules are judged where it is there: ``tables`` when an experiment is read, ``rules`` before data are loaded,
    ``counted`` once the number of clients is known.
    """

    tables: ClassVar[Sequence[Rule[Experiment]]] = ()
    rules: ClassVar[Sequence[Rule[Experiment]]] = ()
    counted: ClassVar[Sequence[Rule[Counted]]] = ()

    def __init__(self, config: Experiment) -> None:
        self.config = config

    def prepared(self, setup: Setup, data: Dataset) -> Setup:
        """What server and hosts agree on, once data are loaded. UserError for what does not go together."""
        return setup

    def server(self, fed: Federation) -> None:
        """Put what happens at the server into ``fed``: endings of rounds, counts of clients."""
