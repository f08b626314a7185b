"""One rank that takes an exception for the death of another one."""

from mpifed.mpi.world import World


class RankDies(Exception):
    """What a call of MPI raises where another rank is dead."""


class Mortal(World):
    """One rank that takes RankDies for the death of another one, and lives on."""

    def survives(self):
        return True

    def lost(self, error):
        return isinstance(error, RankDies)

    def hurt(self):
        pass

    def unhurt(self):
        return True

    def shrink(self):
        return self
