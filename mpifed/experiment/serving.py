"""The two sides of a run at work: rank 0 plays the rounds, the other ranks reply."""

from contextlib import nullcontext
from typing import Any

from mpifed.core.errors import RunError, Singular, UserError
from mpifed.experiment.checkpoint import CheckpointWriter
from mpifed.experiment.housing import federation
from mpifed.experiment.job import Job
from mpifed.experiment.lost_file import lost_at_the_end
from mpifed.experiment.misfit import rounds_of
from mpifed.experiment.new_result import circumstances, redrawn, worth_saying
from mpifed.experiment.prepare import Prepared
from mpifed.experiment.progress import Progress
from mpifed.experiment.rank_reports import block_sizes, collect, reported
from mpifed.experiment.rounds import Outcome, rounds
from mpifed.features.feature import Feature, Looks
from mpifed.features.settings import Experiment
from mpifed.federation.server import Federation
from mpifed.federation.transport import InProcess, Transport
from mpifed.mpi.world import World
from mpifed.results.recorder import Recorder


def host(job: Job, world: World, parts: Prepared) -> None:
    """Ranks above 0: reply to the server's requests until it says stop."""
    from mpifed.mpi import channel
    from mpifed.mpi.communicator import Communicator
    from mpifed.mpi.links import Ranks

    assert parts.host is not None
    assert isinstance(world, Communicator)
    comm = world.comm
    service = channel.Service(world, parts.cuts, job.config.dtype, job.config.reduction)
    with world.agreeing():
        for feature in parts.features if len(parts.cuts) > 2 else ():  # clients are on other ranks too
            feature.linked(lambda near: Ranks(comm, near, service.traffic, service.crowded))
    traffic = service.serve(parts.host)
    if traffic is not None:
        collect(world, parts.host, traffic)


def serve(
    job: Job, world: World, parts: Prepared, recorder: Recorder, progress: Progress, begun: list[Recorder]
) -> Recorder:
    """Rank 0: the rounds, and what is written when they are over."""
    config = job.config
    with recorder:
        transport = connected(config, world, parts)
        with world.agreeing():  # the others link what they exchange
            pass
        again = redrawn(job.before, job.saved)
        checkpoints = CheckpointWriter(config.checkpoint, job.path, job.saved, parts.cuts, again)
        begun.append(recorder)  # from here on a checkpoint beside it is one of this run
        try:
            fed = federation(config, transport, parts)
            for note in [*worth_saying(config, fed.m, parts.features), *circumstances(job, parts)]:
                progress.note(note)
            outcome = played(job, fed, parts.features, recorder, progress, checkpoints)
        except Singular as error:
            transport.stop(collect=False)
            raise explained(error, parts) from None
        except (UserError, RunError):
            transport.stop(collect=False)
            raise
        finally:
            progress.close()
        if parts.data.units is not None:
            record_units(recorder, config, parts)
        transport.stop()
        ranks = reported(world, parts, transport, recorder, fed)
        recorder.table("ranks", {"io_seconds": [recorder.io_seconds + checkpoints.seconds, *ranks["io_seconds"][1:]]})
        recorder.finish(outcome.status, outcome.reason, transport.reduction, **block_sizes(ranks))
        if recorder.lost:
            raise RunError(lost_at_the_end(recorder))
        if outcome.status == "finished" and not config.checkpoint.kept(outcome.reason):
            checkpoints.drop()
    return recorder


def played(
    job: Job,
    fed: Federation,
    features: list[Feature],
    recorder: Recorder,
    progress: Progress,
    checkpoints: CheckpointWriter,
) -> Outcome:
    """Play the rounds, and write the final model and what features found before and after them."""
    looks: Looks = {}
    found: dict[str, Any] = {}
    for feature in features:
        looks |= feature.looks(fed)
        found |= feature.before(fed)
    certified(recorder, found)
    # a run that goes on from a checkpoint may fail because of what is in it
    with nullcontext() if job.saved is None else rounds_of(job):
        outcome = rounds(job.config, fed, recorder, progress, checkpoints, looks)
    x = outcome.server.x
    found = {}
    for feature in features:
        found |= feature.after(fed, x)
    certified(recorder, found)
    recorder.model(x, found.get("personal"))
    recorder.snapshot(x, job.config.record.models, last=True)
    return outcome


def explained(error: Singular, parts: Prepared) -> RunError:
    """Say of a singular Hessian what the problem finds in the samples, which no server sees."""
    why = parts.setup.problem.flat(parts.data, error.x)
    return RunError(f"{error.method} finds no step: {why}") if why else error


def record_units(recorder: Recorder, config: Experiment, parts: Prepared) -> None:
    """Write what features were standardised with, but not beside a model that may be published: it is true data."""
    assert parts.data.units is not None
    privacy = config.algorithm.privacy()
    if not (privacy and privacy.holds):
        recorder.units(*parts.data.units)


def certified(recorder: Recorder, found: dict[str, Any]) -> None:
    """Write the certificate among what features found, if one is there."""
    if "certificate" in found:
        recorder.certificate(found["certificate"])


def connected(config: Experiment, world: World, parts: Prepared) -> Transport:
    """The transport from the server to the hosts: those of other ranks, or the one in this process."""
    if parts.host is not None:
        return InProcess(parts.host)
    from mpifed.mpi.channel import Server
    from mpifed.mpi.communicator import Communicator

    assert isinstance(world, Communicator)
    return Server(world, parts.cuts, config.dtype, config.reduction)
