"""Runs that survive the death of ranks: the surviving ranks attempt them again."""

from collections.abc import Callable

from mpifed.data.cache import Cache
from mpifed.experiment import checkpoint
from mpifed.experiment.job import Job
from mpifed.experiment.progress import Progress
from mpifed.mpi.world import World
from mpifed.results.recorder import Recorder

Attempt = Callable[..., Recorder | None]  # job, world, progress, cache, and a list that gets the recorder


def attempt_until_done(
    attempt: Attempt, job: Job, world: World, progress: Progress, cache: Cache | None
) -> Recorder | None:
    """Attempt a job; when ranks die, attempt it again on the others, from the last checkpoint or else from the start.

    The result so far is passed on in both cases: it tells how many uploads are lost.
    """
    while True:
        done = None
        recorders: list[Recorder] = []
        try:
            done = attempt(job, world, progress, cache, recorders)
            if world.all_alive():
                return done
        except Exception as error:
            if not world.is_rank_failure(error):
                raise
            world.report_cut_off()
        world = world.shrink()
        if world.share(done is not None):
            return done
        saved = checkpoint.read_checkpoint(job.path) if recorders and job.path is not None else job.saved
        before = recorders[0].result() if recorders else job.before
        job = job._replace(force=True, saved=world.share(saved), before=before)
        if world.first:
            after = 0 if job.saved is None else job.saved.round
            progress.note(f"a rank died; {world.size} ranks go on after round {after}")
