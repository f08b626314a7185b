"""Feature of selections beyond all and uniform: rules about methods, and what they learn before round one."""

from mpifed.core.promises import Supports
from mpifed.features.conflicts import CONFLICTS
from mpifed.features.feature import Plugin


class SelectionLaws(Plugin):
    """Selections by turns, by odds, by scores and from recordings."""

    # It has rules alone: the selection speaks for itself.
    supports = Supports.EVERYTHING
    conflicts = CONFLICTS["selection_laws"]
