"""A method of a user's own: what its client methods return is checked on the hosts, in every call."""

from mpifed.algorithms.bases.algorithm import Algorithm
from mpifed.core.promises import Keeps
from mpifed.features.feature import Feature, Housing
from mpifed.features.own_classes.checked_methods import CheckedMethods
from mpifed.federation.host import Host


class OwnClasses(Feature):
    """Checks of a method that a user has written."""

    # It looks at what is returned and changes nothing; the class that it checks speaks for itself.
    keeps = Keeps.EVERYTHING

    def host(self, host: Host, housing: Housing) -> None:
        host.wraps.append(CheckedMethods(self.config.algorithm, Algorithm))
