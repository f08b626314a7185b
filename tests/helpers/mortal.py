"""One rank that takes an exception for the death of another one."""

from mpifed.mpi.world import World


class RankDies(Exception):
    """What a call of MPI raises where another rank is dead."""


class Mortal(World):
    """One rank that takes RankDies for the death of another one, and lives on."""

    def is_fault_tolerant(self):
        return True

    def is_rank_failure(self, error):
        return isinstance(error, RankDies)

    def report_cut_off(self):
        pass

    def all_alive(self):
        return True

    def shrink(self):
        return self
