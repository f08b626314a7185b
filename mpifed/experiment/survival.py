"""Runs that survive the death of ranks: the others attempt them again."""

from collections.abc import Callable

from mpifed.data.cache import Cache
from mpifed.experiment import checkpoint
from mpifed.experiment.job import Job
from mpifed.experiment.progress import Progress
from mpifed.mpi.world import World
from mpifed.results.recorder import Recorder

Attempt = Callable[..., Recorder | None]  # job, world, progress, cache, and a list that gets the recorder


def surviving(attempt: Attempt, job: Job, world: World, progress: Progress, cache: Cache | None) -> Recorder | None:
    """Attempt a job; when ranks die, the others attempt it again from the last checkpoint, or else from the start.

    Either way the result so far is handed on: it says how many uploads are lost.
    """
    while True:
        done = None
        begun: list[Recorder] = []
        try:
            done = attempt(job, world, progress, cache, begun)
            if world.unhurt():
                return done
        except Exception as error:
            if not world.lost(error):
                raise
            world.hurt()
        world = world.shrink()
        if world.share(done is not None):
            return done
        found = checkpoint.find(job.path) if begun and job.path is not None else job.saved
        before = begun[0].result() if begun else job.before
        job = job._replace(force=True, saved=world.share(found), before=before)
        if world.first:
            after = 0 if job.saved is None else job.saved.round
            progress.note(f"a rank died; {world.size} ranks go on after round {after}")
