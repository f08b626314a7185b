"""What a feature is: a part of a run beyond the plain rounds."""

from collections.abc import Sequence
from typing import ClassVar

from mpifed.features.rule import Counted, Rule
from mpifed.features.settings import Experiment


class Feature:
    """A part of a run beyond the plain rounds, made only for studies that have it.

    Its rules are judged where it is there: ``tables`` when an experiment is read, ``rules`` before data are loaded,
    ``counted`` once the number of clients is known.
    """

    tables: ClassVar[Sequence[Rule[Experiment]]] = ()
    rules: ClassVar[Sequence[Rule[Experiment]]] = ()
    counted: ClassVar[Sequence[Rule[Counted]]] = ()
