"""The two sides of a run: rank 0 runs the rounds, the other ranks reply."""

from contextlib import nullcontext
from typing import Any

from mpifed.core.errors import RunError, SingularHessian, UserError
from mpifed.experiment.checkpoint import CheckpointWriter
from mpifed.experiment.checkpoint_errors import guard_resumed_rounds, lost_file_error
from mpifed.experiment.config import Job
from mpifed.experiment.housing import build_federation, engine_plugins
from mpifed.experiment.new_result import initial_notes, replayed_rounds, run_notes
from mpifed.experiment.prepare import PreparedRun
from mpifed.experiment.progress import Progress
from mpifed.experiment.rank_reports import block_attributes, collect_reports, write_reports
from mpifed.experiment.rounds import RunOutcome, run_rounds
from mpifed.features.feature import Callbacks
from mpifed.features.settings import Experiment
from mpifed.federation.server import Federation
from mpifed.federation.transport import InProcess, Transport
from mpifed.mpi.world import World
from mpifed.results.recorder import Recorder


def host(job: Job, world: World, parts: PreparedRun) -> None:
    """Reply to the server's requests until it says stop; run by ranks above 0."""
    from mpifed.mpi import channel
    from mpifed.mpi.communicator import Communicator
    from mpifed.mpi.links import MPILinks

    assert parts.host is not None
    assert isinstance(world, Communicator)
    comm = world.comm
    service = channel.Service(world, parts.cuts, job.config.dtype, job.config.reduction)
    with world.agreeing():
        for feature in engine_plugins(parts) if len(parts.cuts) > 2 else ():  # clients are on other ranks too
            feature.link_hosts(lambda near: MPILinks(comm, near, service.traffic, service.shares_cores))
    traffic = service.serve(parts.host)
    if traffic is not None:
        collect_reports(world, parts.host, traffic)


def serve(
    job: Job, world: World, parts: PreparedRun, recorder: Recorder, progress: Progress, recorders: list[Recorder]
) -> Recorder:
    """Run the rounds on rank 0, and write the rest of the result file."""
    config = job.config
    with recorder:
        transport = make_transport(config, world, parts)
        with world.agreeing():  # the other ranks set up the links between them
            pass
        replayed = replayed_rounds(job.before, job.saved)
        checkpoints = CheckpointWriter(config.checkpoint, job.path, job.saved, parts.cuts, replayed, parts.callbacks)
        recorders.append(recorder)  # from now on a checkpoint beside the file belongs to this run
        try:
            fed = build_federation(config, transport, parts)
            for note in [*initial_notes(config, fed.m, parts.callbacks), *run_notes(job, parts)]:
                progress.note(note)
            outcome, tables = run_and_store(job, fed, parts.callbacks, recorder, progress, checkpoints)
        except SingularHessian as error:
            transport.stop(collect=False)
            raise explain_singular(error, parts) from None
        except (UserError, RunError):
            transport.stop(collect=False)
            raise
        finally:
            progress.close()
        if parts.data.units is not None:
            record_units(recorder, config, parts)
        transport.stop()
        ranks = write_reports(world, parts, transport, recorder, fed, tables)
        recorder.table("ranks", {"io_seconds": [recorder.io_seconds + checkpoints.seconds, *ranks["io_seconds"][1:]]})
        recorder.finish(outcome.status, outcome.reason, transport.reduction, **block_attributes(ranks))
        if recorder.lost:
            raise RunError(lost_file_error(recorder))
        if outcome.status == "finished" and not config.checkpoint.keeps_last(outcome.reason):
            checkpoints.drop()
    return recorder


def run_and_store(
    job: Job,
    fed: Federation,
    callbacks: Callbacks,
    recorder: Recorder,
    progress: Progress,
    checkpoints: CheckpointWriter,
) -> tuple[RunOutcome, dict[str, Any]]:
    """Run the rounds; write the final model, and return the tables of callbacks from before and after the rounds."""
    results = store_results(recorder, {}, [callback.on_start(fed) for callback in callbacks])
    # a resumed run may fail because of what is in its checkpoint
    with nullcontext() if job.saved is None else guard_resumed_rounds(job):
        outcome = run_rounds(job.config, fed, recorder, progress, checkpoints, callbacks)
    x = outcome.server.x
    results = store_results(recorder, results, [callback.on_end(fed, x) for callback in callbacks])
    recorder.model(x, results.pop("personal", None))
    if "best" in results:
        recorder.best(*results.pop("best"))
    recorder.write_snapshot(x, job.config.record.models, last=True)
    return outcome, results


def explain_singular(error: SingularHessian, parts: PreparedRun) -> RunError:
    """Return an error for a singular Hessian that adds what the problem finds in the samples, which no server sees."""
    cause = parts.setup.problem.singularity_reason(parts.data, error.x)
    return RunError(f"{error.method} finds no step: {cause}") if cause else error


def record_units(recorder: Recorder, config: Experiment, parts: PreparedRun) -> None:
    """Write the means and scales of standardised features, unless the model may be published: they are true data."""
    assert parts.data.units is not None
    privacy = config.guarantee()
    if not (privacy and privacy.holds):
        recorder.units(*parts.data.units)


def store_results(recorder: Recorder, results: dict[str, Any], more: list[dict[str, Any]]) -> dict[str, Any]:
    """Write the certificate among what callbacks return; return the rest by name, with the columns of all tables."""
    for result in more:
        for name, value in result.items():
            results[name] = results.get(name, {}) | value if isinstance(value, dict) else value
    if "certificate" in results:
        recorder.certificate(results.pop("certificate"))
    return results


def make_transport(config: Experiment, world: World, parts: PreparedRun) -> Transport:
    """Make the transport from the server to the hosts: those of other ranks, or the one in this process."""
    if parts.host is not None:
        return InProcess(parts.host)
    from mpifed.mpi.channel import Server
    from mpifed.mpi.communicator import Communicator

    assert isinstance(world, Communicator)
    return Server(world, parts.cuts, config.dtype, config.reduction)
