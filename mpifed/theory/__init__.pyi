"""The names of ``mpifed.theory`` and where they come from; ``mpifed/theory/__init__.py`` reads this file too."""

from mpifed.theory.statements import Bound as Bound
from mpifed.theory.statements import Certificate as Certificate
from mpifed.theory.statements import Condition as Condition
from mpifed.theory.statements import StudyConstants as StudyConstants
