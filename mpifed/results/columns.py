"""What the columns of a result file mean: unit and one sentence for every name that is fixed."""

from __future__ import annotations

from typing import Any, NamedTuple

from numpy.typing import NDArray

from mpifed.core.errors import unknown


class Column(NamedTuple):
    """``unit`` as UDUNITS reads it ("1": a plain number), ``description`` one sentence, ``integer`` stored as int64."""

    unit: str
    description: str
    integer: bool = False


# "s" and never "seconds": xarray would make time differences of the latter and change the type of the column
COLUMNS: dict[str, Column] = {
    "objective": Column("1", "Mean over clients of the local objectives at the server's model, on training samples."),
    "objective_samples": Column("1", "The same, clients weighted by their numbers of samples."),
    "grad_norm_sq": Column("1", "Squared Euclidean norm of the gradient of the objective at the server's model."),
    "objective_gap": Column("1", "Objective less the optimum that the experiment file gives."),
    "accuracy": Column("1", "Share of samples that the server's model classifies rightly, mean over clients."),
    "accuracy_pooled": Column("1", "Share of all test samples that the server's model classifies rightly."),
    "personal_accuracy": Column("1", "Share of samples that a client's own model classifies rightly, mean over all."),
    "personal_objective": Column("1", "Mean over clients of the local objectives, each at the client's own model."),
    "moreau_envelope": Column("1", "Mean over clients of the local Moreau envelopes at the server's model."),
    "lagrangian": Column("1", "Augmented Lagrangian of the algorithm at its present state."),
    "dual_objective": Column("1", "Value of the dual problem at the present dual variables."),
    "snr": Column("1", "Signal-to-noise ratio of the uploads."),
    "epsilon": Column("1", "Privacy spent so far, the epsilon of differential privacy."),
    "exchanges": Column("1", "Exchanges between server and clients so far.", True),
    "uploads": Column("1", "Messages from clients to the server so far.", True),
    "downloads": Column("1", "Messages from the server to clients so far.", True),
    "bytes_up": Column("byte", "Bytes sent by clients to the server so far.", True),
    "bytes_down": Column("byte", "Bytes sent by the server to clients so far.", True),
    "inner_steps": Column("1", "Local steps of all clients in the round.", True),
    "compute_seconds": Column("s", "Local computation of the round on the slowest rank."),
    "client_seconds": Column("s", "Local computation of the round, sum over clients."),
    "server_seconds": Column("s", "Computation of the server in the round."),
    "comm_seconds": Column("s", "Time that the round spent in communication between ranks."),
    "evaluate_seconds": Column("s", "Time spent on measuring the objective and the like for the record."),
    "asked": Column("1", "Clients chosen in the round, over all its draws; those who answer train.", True),
    "dropped": Column("1", "Clients of those asked in the round who dropped out.", True),
    "late": Column("1", "Clients of those asked in the round who would have answered after the deadline.", True),
    "simulated_seconds": Column("s", "Time since the start that the rounds would take on the clients of [system]."),
    "elapsed_seconds": Column("s", "Time since the start without evaluation and without writing results."),
}

RANKS: dict[str, Column] = {
    "clients": Column("1", "Clients that live on the rank.", True),
    "samples": Column("1", "Training samples of the clients of the rank.", True),
    "compute_seconds": Column("s", "Local computation of the clients of the rank."),
    "comm_seconds": Column("s", "Time in MPI calls."),
    "wait_seconds": Column("s", "Time in MPI calls that passed before the other ranks arrived."),
    "evaluate_seconds": Column("s", "Time spent on measuring the objective and the like for the record."),
    "io_seconds": Column("s", "Time spent on writing results."),
    "mpi_calls": Column("1", "MPI calls.", True),
    "mpi_bytes_sent": Column("byte", "Bytes sent to other ranks.", True),
    "mpi_bytes_received": Column("byte", "Bytes received from other ranks.", True),
    "max_rss_bytes": Column("byte", "Most memory that the process has held.", True),
    "hostname": Column("1", "Name of the machine."),
}

CLIENTS: dict[str, Column] = {
    "samples": Column("1", "Training samples of the client.", True),
    "rank": Column("1", "Rank on which the client lives.", True),
    "times_selected": Column("1", "Rounds in which the client was chosen.", True),
    "compute_seconds": Column("s", "Local computation of the client in all rounds."),
}

MODEL: dict[str, Column] = {
    "x": Column("1", "Final model of the server."),
    "personal": Column("1", "Final model of each client."),
}

SCALES: dict[str, Column] = {
    "round": Column("1", "Communication round; row 0 is the state before any local work.", True),
    "rank": Column("1", "MPI process.", True),
    "client": Column("1", "Client id, from 0.", True),
    "slot": Column("1", "Place among the clients chosen in a round."),
    "parameter": Column("1", "Place in the model."),
}

UNKNOWN = Column("1", "Reported by the algorithm.")
SELECTION = Column("1", "Ids of the clients chosen in the round, then -1; nobody in row 0; -2: all clients.", True)
EVERYBODY_LISTED = 4096  # most clients whose ids are written out where all were chosen
ALL = -2  # stands first in a row of /selection where all of more clients were chosen


class Columns(dict[str, NDArray[Any]]):
    """name -> array; a name that is not there is refused with the nearest one."""

    def __missing__(self, name: str) -> NDArray[Any]:
        unknown("column", name, self)
