"""What every recorded column is: unit, meaning, how it adds up, which value is better, and what reports call it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from mpifed.core.errors import unknown
from mpifed.core.typing import Array

Span = Literal["state", "round", "total"]
Part = Literal["outcome", "communication", "time"]


class Column(NamedTuple):
    """One column of a result file.

    Everything that the writer, the reports, the pictures and docs/results.md need to know about it.
    """

    unit: str  # as UDUNITS reads it; "1": a plain number
    description: str  # one sentence, stored with the column
    integer: bool = False  # stored as int64 as long as every value is a whole number
    span: Span = "state"  # a row holds the state after the round, an amount of the round, or a total since the start
    better: int = 0  # 1: higher is better, -1: lower is better, 0: neither
    symbol: str = ""  # name in tables and on axes; empty: the name of the column
    latex: str = ""  # the same in LaTeX, where it differs
    part: Part = "outcome"  # where `mpifed show` lists it


# "s" and not "seconds": xarray would decode the latter as time differences and change the type of the column
COLUMNS: dict[str, Column] = {
    "objective": Column(
        "1", "Mean over clients of the local objectives at the server's model, on training samples.", better=-1
    ),
    "objective_samples": Column("1", "The same mean, clients weighted by their number of samples.", better=-1),
    "grad_norm_sq": Column(
        "1",
        "Squared Euclidean norm of the gradient of the objective at the server's model.",
        better=-1,
        symbol="‖∇f‖²",
        latex=r"$\|\nabla f\|^2$",
    ),
    "objective_gap": Column(
        "1", "Objective minus the optimum given as stop.optimum.", better=-1, symbol="f − f*", latex="$f - f^*$"
    ),
    "accuracy": Column(
        "1", "Fraction of samples that the server's model classifies correctly, mean over clients.", better=1
    ),
    "accuracy_pooled": Column(
        "1", "Fraction of all test samples that the server's model classifies correctly.", better=1
    ),
    "personal_accuracy": Column(
        "1", "Fraction of samples that a client's own model classifies correctly, mean over clients.", better=1
    ),
    "personal_objective": Column(
        "1", "Mean over clients of the local objectives, each at the client's own model.", better=-1
    ),
    "rmse": Column(
        "1", "Root of the mean squared error of the server's model, mean over clients.", better=-1, symbol="RMSE"
    ),
    "mae": Column("1", "Mean absolute error of the server's model, mean over clients.", better=-1, symbol="MAE"),
    "r2": Column(
        "1",
        "Share of the variance of the labels that the server's model explains, mean over clients.",
        better=1,
        symbol="R²",
        latex="$R^2$",
    ),
    "consensus": Column(
        "1", "Mean over nodes of a graph of ‖x_i − x‖², x the mean of their models x_i.", better=-1, symbol="consensus"
    ),
    "consensus_max": Column("1", "Largest ‖x_i − x‖² of a node of a graph.", better=-1, symbol="consensus, worst node"),
    "dual_objective": Column("1", "Dual objective Σ f_i*(y_i), which the dual methods minimise.", better=-1),
    "lagrangian": Column(
        "1", "Augmented Lagrangian at the clients' variables and the server's model.", better=-1, symbol="Lagrangian"
    ),
    "envelope": Column(
        "1",
        "Objective of personal models θ_i: mean over clients of f_i(θ_i) + (λ/2)‖θ_i − w‖² at the server's model w.",
        better=-1,
    ),
    "snr": Column("1", "Signal-to-noise ratio of the uploads: least log10(‖w_i‖/‖noise‖) over clients.", symbol="SNR"),
    "epsilon": Column(
        "1",
        "The ε that the noise of an upload names, times the uploads so far of the client with most. It is privacy "
        "spent only in a file whose attribute privacy guarantees this ε.",
        symbol="named ε × uploads",
        latex=r"named $\varepsilon$ $\times$ uploads",
    ),
    "epsilon_accounted": Column(
        "1",
        "The ε at algorithm.delta that Rényi accounting gives for all released so far: of the client with most "
        "uploads, or of sums. It is privacy spent only in a file whose attribute privacy guarantees that of a release.",
        symbol="ε accounted",
        latex=r"$\varepsilon$ accounted",
    ),
    "penalty": Column("1", "Penalty σ of the server, where it adapts itself."),
    "server_step": Column("1", "Step size with which the server moved its model in the round."),
    "exchanges": Column(
        "1", "Exchanges between server and clients so far.", True, "total", better=-1, part="communication"
    ),
    "uploads": Column("1", "Messages from clients to the server so far.", True, "total", -1, part="communication"),
    "downloads": Column("1", "Messages from the server to clients so far.", True, "total", -1, part="communication"),
    "bytes_up": Column(
        "byte", "Bytes sent by clients to the server so far.", True, "total", -1, symbol="up", part="communication"
    ),
    "bytes_down": Column(
        "byte", "Bytes sent by the server to clients so far.", True, "total", -1, symbol="down", part="communication"
    ),
    "bits_up": Column("bit", "Bits sent by clients to the server so far.", True, "total", -1, part="communication"),
    "bits_down": Column("bit", "Bits sent by the server to clients so far.", True, "total", -1, part="communication"),
    "inner_steps": Column("1", "Inner steps of all clients so far.", True, "total", better=-1),
    "compute_seconds": Column(
        "s",
        "Local computation of the round: of each request the seconds of the slowest rank.",
        span="round",
        better=-1,
        symbol="compute, slowest rank",
        part="time",
    ),
    "client_seconds": Column(
        "s",
        "Local computation of the round, sum over clients.",
        span="round",
        better=-1,
        symbol="compute, all clients",
        part="time",
    ),
    "server_seconds": Column(
        "s", "Computation of the server in the round.", span="round", better=-1, symbol="server", part="time"
    ),
    "comm_seconds": Column(
        "s",
        "Time that the round spent in communication between ranks.",
        span="round",
        better=-1,
        symbol="communication",
        part="time",
    ),
    "evaluate_seconds": Column(
        "s",
        "Time spent on evaluating the objective and the other recorded quantities.",
        span="round",
        better=-1,
        symbol="evaluation",
        part="time",
    ),
    "asked": Column(
        "1",
        "Clients selected in the round, summed over its selections; those that reply train.",
        True,
        "round",
        part="communication",
    ),
    "dropped": Column(
        "1", "Selected clients that dropped out in the round.", True, "round", better=-1, part="communication"
    ),
    "late": Column(
        "1",
        "Selected clients whose reply would have come after the round's deadline.",
        True,
        "round",
        better=-1,
        part="communication",
    ),
    "shortened": Column(
        "1", "Clients that took fewer local steps to reply in time.", True, "round", part="communication"
    ),
    "staleness": Column(
        "1",
        "Age in rounds of the models that uploads were computed from, mean over those that arrived.",
        span="round",
        part="communication",
    ),
    "staleness_max": Column("1", "The largest of these ages.", True, "round", part="communication"),
    "computed_at_once": Column(
        "1",
        "Clients that computed in the round, all at once; 0 where all that arrived was there.",
        True,
        "round",
        part="communication",
    ),
    "simulated_seconds": Column(
        "s",
        "Time since the start that the rounds would take on the client devices of [system].",
        span="total",
        better=-1,
        symbol="simulated time",
        part="time",
    ),
    "elapsed_seconds": Column(
        "s",
        "Time since the start, without evaluating and without writing results.",
        span="total",
        better=-1,
        symbol="time",
        part="time",
    ),
}

COUNTED = {name for name, column in COLUMNS.items() if column.part != "outcome"} - {"evaluate_seconds"}  # every round

SCALES: dict[str, Column] = {
    "round": Column("1", "Communication round; row 0 is the state before any local work.", True),
    "rank": Column("1", "MPI process.", True),
    "client": Column("1", "Client id, from 0.", True),
    "slot": Column("1", "Index among the clients selected in a round."),
    "parameter": Column("1", "Index in the model."),
    "condition": Column("1", "Number of the condition.", True),
    "number": Column("1", "Number of the bound.", True),
}

UNKNOWN = Column("1", "Reported by the algorithm or the problem.")
MEASURES = ("rmse", "mae", "r2")  # columns that a problem may have measured
SELECTION = Column(
    "1", "Ids of the clients selected in the round, padded with -1; none in row 0; -2: all clients.", True
)
ALL_LISTED = 4096  # most clients whose ids are written out where all were selected
ALL = -2  # first entry of a row of /selection where all of more clients were selected


class Columns(dict[str, Array]):
    """Arrays by name. UserError, with the nearest name, for a column that is not there."""

    def __missing__(self, name: str) -> Array:
        unknown("column", name, self)
