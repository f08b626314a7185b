"""Descriptions of all recorded columns: COLUMNS has those of /rounds, and the other tables those of other groups."""

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from mpifed.core.errors import escape_unprintable, format_count, raise_unknown
from mpifed.core.roles import TEST, VALIDATED, VALIDATION, Role
from mpifed.core.typing import Array


class ColumnInfo(NamedTuple):
    """The description of a column of a result file, for the writer, the reports, the pictures and docs/results.md."""

    unit: str  # as UDUNITS reads it; "1": a plain number
    description: str  # one sentence, stored with the column
    integer: bool = False  # stored as int64 as long as every value is a whole number below 2⁶³
    span: Literal["state", "round", "total"] = "state"  # after the round, in the round, or a total since the start
    better: int = 0  # 1: higher is better, -1: lower is better, 0: neither
    symbol: str = ""  # name in tables and on axes; empty: the name of the column
    latex: str = ""  # the same in LaTeX, where it differs
    part: Literal["outcome", "communication", "time"] = "outcome"  # where `mpifed show` lists it
    sample_attrs: Mapping[str, str | int] = MappingProxyType({})  # attributes with the samples that it is computed on


lower_is_better = partial(ColumnInfo, "1", better=-1)  # a state, better if lower
higher = partial(ColumnInfo, "1", better=1)  # a state, better if higher
activity = partial(ColumnInfo, "1", span="round", part="communication")  # activity of the clients of a round
# In "s" and not "seconds", which xarray would decode as time differences of another type.
duration = partial(ColumnInfo, "s", span="round", better=-1, part="time")
EVALUATION = "Time spent on evaluating the objective and the other recorded quantities."


def sent_total(description: str, unit: str = "1", symbol: str = "") -> ColumnInfo:
    return ColumnInfo(unit, description, True, "total", -1, symbol, part="communication")


COLUMNS: dict[str, ColumnInfo] = {
    "objective": lower_is_better(
        "Mean over clients of the local objectives at the server's model, on training samples; with objective.l1 or l2 "
        "plus the penalty."
    ),
    "objective_samples": lower_is_better("The same mean, clients weighted by their number of samples."),
    "grad_norm_sq": lower_is_better(
        "Squared Euclidean norm of the gradient of the objective at the server's model; with objective.l1 or l2 of the "
        "optimality residual x − prox(x − ∇f(x)).",
        symbol="‖∇f‖²",
        latex=r"$\|\nabla f\|^2$",
    ),
    "objective_gap": lower_is_better(
        "Objective minus the optimum given as stop.optimum.", symbol="f − f*", latex="$f - f^*$"
    ),
    "accuracy": higher(
        "Fraction of a client's test samples that the server's model classifies correctly, mean over clients."
    ),
    "accuracy_pooled": higher("Fraction of the test samples of all clients that the server's model gets right."),
    "personal_accuracy": higher(
        "Fraction of a client's test samples that its own model classifies correctly, mean over clients."
    ),
    "personal_objective": lower_is_better("Mean over clients of the local objectives, each at the client's own model."),
    "rmse": lower_is_better(
        "Root of the mean squared error of the server's model on a client's test samples, mean over clients.",
        symbol="RMSE",
    ),
    "mae": lower_is_better(
        "Mean absolute error of the server's model on a client's test samples, mean over clients.", symbol="MAE"
    ),
    "r2": higher(
        "Share of the variance of the labels of a client's test samples that the server's model explains, mean over "
        "clients.",
        symbol="R²",
        latex="$R^2$",
    ),
    "deviance": lower_is_better(
        "Mean deviance of the label of a client's test samples at the server's model, mean over clients."
    ),
    "c_index": higher(
        "Share of pairs of a client's test samples of which the one with the higher score has its event first, 1/2 "
        "without any pair, mean over clients.",
        symbol="c-index",
    ),
    "test_objective": lower_is_better(
        "Mean over clients of the local objectives at the server's model, each on the client's test samples and all "
        "clients alike; without the penalty of objective.l1 or l2."
    ),
    "consensus": lower_is_better(
        "Mean over nodes of a graph of ‖x_i − x‖², x the mean of their models x_i.", symbol="consensus"
    ),
    "consensus_max": lower_is_better("Largest ‖x_i − x‖² of a node of a graph.", symbol="consensus, worst node"),
    "dual_objective": lower_is_better("Dual objective Σ f_i*(y_i), which the dual methods minimise."),
    "lagrangian": lower_is_better(
        "Augmented Lagrangian at the clients' variables and the server's model.", symbol="Lagrangian"
    ),
    "envelope": lower_is_better(
        "Objective of personal models θ_i: mean over clients of f_i(θ_i) + (λ/2)‖θ_i − w‖² at the server's model w."
    ),
    "fair_objective": lower_is_better(
        "Objective of q-fedavg, the mean over clients of f_i^(q+1)/(q+1) at the server's model, by their weights."
    ),
    "snr": ColumnInfo(
        "1", "Signal-to-noise ratio of the uploads: least log10(‖w_i‖/‖noise‖) over clients.", symbol="SNR"
    ),
    "epsilon": ColumnInfo(
        "1",
        "The ε that the noise of an upload names, times the uploads so far of the client with most. It is privacy "
        "spent only in a file whose attribute privacy guarantees this ε.",
        symbol="named ε × uploads",
        latex=r"named $\varepsilon$ $\times$ uploads",
    ),
    "epsilon_accounted": ColumnInfo(
        "1",
        "The ε at algorithm.delta that Rényi accounting gives for all released so far: of the client with most "
        "uploads, or of sums as algorithm.colluding clients see them. It is privacy spent only in a file whose "
        "attribute privacy guarantees that of a release.",
        symbol="ε accounted",
        latex=r"$\varepsilon$ accounted",
    ),
    "epsilon_pld": ColumnInfo(
        "1",
        "The ε at privacy.delta of all rounds so far by privacy loss distributions, rounded up. It is privacy spent "
        "only in a file whose attribute privacy says that it is guaranteed.",
        symbol="ε",
        latex=r"$\varepsilon$",
    ),
    "epsilon_rdp": ColumnInfo(
        "1", "The same by Rényi divergences, which is larger.", symbol="ε (Rényi)", latex=r"$\varepsilon$ (Rényi)"
    ),
    "clip": ColumnInfo("1", "Bound of the norm of what a client uploads, where privacy.quantile moves it."),
    "penalty": ColumnInfo("1", "Penalty σ of the server, where it adapts itself."),
    "server_step": ColumnInfo("1", "Step size with which the server moved its model in the round."),
    "exchanges": sent_total("Exchanges between server and clients so far."),
    "uploads": sent_total("Messages from clients to the server so far."),
    "downloads": sent_total("Messages from the server to clients so far."),
    "bytes_up": sent_total("Bytes sent by clients to the server so far.", "byte", "up"),
    "bytes_down": sent_total("Bytes sent by the server to clients so far.", "byte", "down"),
    "bits_up": sent_total("Bits sent by clients to the server so far.", "bit"),
    "bits_down": sent_total("Bits sent by the server to clients so far.", "bit"),
    "inner_steps": ColumnInfo("1", "Inner steps of all clients so far.", True, "total", better=-1),
    "compute_seconds": duration(
        "Local computation of the round: of each request the seconds of the slowest rank.",
        symbol="compute, slowest rank",
    ),
    "client_seconds": duration("Local computation of the round, sum over clients.", symbol="compute, all clients"),
    "server_seconds": duration("Computation of the server in the round.", symbol="server"),
    "comm_seconds": duration("Time that the round spent in communication between ranks.", symbol="communication"),
    "evaluate_seconds": duration(EVALUATION, symbol="evaluation"),
    "available": activity("Clients that were there when the round began.", True),
    "selected": activity("Clients selected in the round, summed over its selections; those that reply train.", True),
    "dropped": activity("Selected clients that dropped out in the round.", True, better=-1),
    "late": activity("Selected clients whose reply would have come after the round's deadline.", True, better=-1),
    "shortened": activity("Clients that took fewer local steps to reply in time.", True),
    "staleness": activity("Age in rounds of the models that uploads were computed from, mean over those that arrived."),
    "staleness_max": activity("The largest of these ages.", True),
    "computed_at_once": activity(
        "Clients that computed in the round, all at once; 0 where all that arrived was there.", True
    ),
    "simulated_seconds": duration(
        "Time since the start that the rounds would take on the client devices of [system].",
        symbol="simulated time",
        span="total",
    ),
    "elapsed_seconds": duration(
        "Time since the start, without evaluating and without writing results.", symbol="time", span="total"
    ),
}

MEASURES = ("rmse", "mae", "r2", "deviance", "c_index")  # columns that a problem may evaluate
OF_SAMPLES = {name: name for name in ("accuracy", "accuracy_pooled", "personal_accuracy", *MEASURES)}
for name, alike in {"objective": "test_objective", **OF_SAMPLES}.items():
    column = COLUMNS[alike]
    COLUMNS[VALIDATED + name] = column._replace(
        description=column.description.replace("test samples", "validation samples"),
        symbol=f"validation {column.symbol or name}",
        latex=f"validation {column.latex}" if column.latex else "",
    )

COUNTED = {name for name, column in COLUMNS.items() if column.part != "outcome"} - {"evaluate_seconds"}  # every round

SCALES: dict[str, ColumnInfo] = {
    "round": ColumnInfo("1", "Communication round; row 0 is the state before any local work.", True),
    "rank": ColumnInfo("1", "MPI process.", True),
    "client": ColumnInfo("1", "Client id, from 0.", True),
    "slot": ColumnInfo("1", "Index among the clients selected in a round."),
    "parameter": ColumnInfo("1", "Index in the model."),
    "feature": ColumnInfo("1", "Index among the features."),
    "condition": ColumnInfo("1", "Number of the condition.", True),
    "number": ColumnInfo("1", "Number of the bound.", True),
}

UNKNOWN = ColumnInfo("1", "Reported by the algorithm or the problem.")
SELECTION = ColumnInfo(
    "1", "Ids of the clients selected in the round, padded with -1; none in row 0; -2: all clients.", True
)
ALL_LISTED = 4096  # most clients whose ids are written out where all were selected
ALL = -2  # first entry of a row of /selection where all of more clients were selected

RANKS: dict[str, ColumnInfo] = {
    "clients": ColumnInfo("1", "Clients that live on the rank.", True),
    "samples": ColumnInfo("1", "Training samples of the clients of the rank.", True),
    "compute_seconds": ColumnInfo("s", "Local computation of the clients of the rank.", symbol="compute"),
    "comm_seconds": ColumnInfo("s", "Time in MPI calls.", symbol="mpi"),
    "wait_seconds": ColumnInfo("s", "Part of the time in MPI calls before the other ranks arrived.", symbol="wait"),
    "evaluate_seconds": ColumnInfo("s", EVALUATION, symbol="eval"),
    "io_seconds": ColumnInfo("s", "Time spent on writing results.", symbol="io"),
    "mpi_calls": ColumnInfo("1", "MPI calls.", True, symbol="calls"),
    "mpi_messages_received": ColumnInfo("1", "Messages received from other ranks.", True, symbol="messages"),
    "mpi_bytes_sent": ColumnInfo("byte", "Bytes sent to other ranks.", True, symbol="sent"),
    "mpi_bytes_received": ColumnInfo("byte", "Bytes received from other ranks.", True, symbol="received"),
    "max_rss_bytes": ColumnInfo("byte", "Peak memory of the process (resident set size).", True, symbol="memory"),
    "shared_bytes": ColumnInfo(
        "byte",
        "Part of that memory which the ranks of a machine have together: it is there once, not once a rank.",
        True,
        symbol="shared",
    ),
    "max_device_bytes": ColumnInfo(
        "byte", "Most memory of a GPU that PyTorch had at a time; 0 without.", True, symbol="gpu"
    ),
    "threads": ColumnInfo("1", "Threads that the numerical libraries of the process use.", True),
    "cpus": ColumnInfo("1", "CPUs that the process may run on, such as 0-3,8; empty where the system does not tell."),
    "blas": ColumnInfo("1", "BLAS of the process, its version and the kernels that it chose for the processor."),
    "block_bytes": ColumnInfo("byte", "Samples that are computed on at a time; no result depends on it.", True),
    "sample_space_clients": ColumnInfo(
        "1", "Clients whose local steps were taken with a Gram matrix of their samples.", True
    ),
    "block_bytes_reason": ColumnInfo("1", "The reason for this size: the experiment, the cache, or the first rounds."),
    "hostname": ColumnInfo("1", "Name of the machine.", symbol="host"),
}

CLIENTS: dict[str, ColumnInfo] = {
    "samples": ColumnInfo("1", "Training samples of the client.", True),
    "rank": ColumnInfo("1", "Rank on which the client lives.", True),
    "times_selected": ColumnInfo("1", "Rounds in which the client was selected.", True),
    "compute_seconds": ColumnInfo("s", "Local computation of the client in all rounds."),
    "data_client": ColumnInfo("1", "Number of the client in the data, of a run with evaluate.unseen.", True),
}

MODEL: dict[str, ColumnInfo] = {
    "x": ColumnInfo("1", "Final model of the server."),
    "personal": ColumnInfo("1", "Final model of each client."),
    "best": ColumnInfo("1", "Model of the server in the round best_round, the best by the column chosen_by."),
    "mean": ColumnInfo("1", "Mean of a feature in the table, which data.standardise takes off."),
    "deviation": ColumnInfo("1", "Standard deviation of a feature in the table, by which data.standardise divides."),
}

STORED = "stored_round"  # not round, the dimension of /rounds: xarray allows one dimension of a name
MODELS: dict[str, ColumnInfo] = {
    STORED: ColumnInfo("1", "Communication round after which the model was stored.", True),
    "x": ColumnInfo("1", "Model of the server after the round."),
}

BY_CLIENT: dict[str, ColumnInfo] = {
    STORED: ColumnInfo("1", "Communication round in which the clients were evaluated.", True),
    "accuracy": higher("Fraction of the client's test samples that the server's model classifies correctly."),
    "personal_accuracy": higher("Fraction of the client's test samples that its own model classifies correctly."),
    "rmse": lower_is_better("Root of the mean squared error of the server's model on the client's test samples."),
    "mae": lower_is_better("Mean absolute error of the server's model on the client's test samples."),
    "r2": higher("Share of the variance of the labels of the client's test samples that the server's model explains."),
    "auc": higher("Area under the ROC curve of the client's test samples, NaN with one class only.", symbol="AUC"),
    "c_index": higher("c-index of the client's test samples, NaN where no two can be compared.", symbol="c-index"),
    "deviance": lower_is_better("Mean deviance of the label of the client's test samples."),
    "calibration_error": lower_is_better("Expected calibration error of the client's test samples, in 15 bins."),
    "observed_expected": ColumnInfo(
        "1", "Sum of the labels of the client's test samples over the sum that the model expects.", symbol="O/E"
    ),
}

UNSEEN: dict[str, ColumnInfo] = {
    "data_client": ColumnInfo("1", "Number of the client in the data.", True),
    "samples": CLIENTS["samples"],
}

EVALUATED_ON = {"clients": "evaluated_on", "unseen": "unseen_evaluated_on"}  # table -> attribute with their samples
AT = {"personal_": "At the client's own model: ", "_after": "After steps of the client's own: "}


def sample_role(attrs: Mapping[str, Any], name: str) -> Role | None:
    """Return the samples that a column of the rounds is computed on, from the root attributes; None: no samples."""
    if name.startswith(VALIDATED) and (missing := attrs.get("validation_missing")) is not None:
        return Role(VALIDATION, int(missing))
    if name not in str(attrs.get("evaluated", "")).split():
        return None
    return Role(escape_unprintable(str(attrs.get("evaluated_on", TEST))), int(attrs.get("missing", 0)))


def round_column_info(name: str, attrs: Mapping[str, Any]) -> ColumnInfo:
    """Return the description of a column of the rounds, with its samples and how many clients have none."""
    column = COLUMNS.get(name, UNKNOWN)
    role = sample_role(attrs, name)
    if role is None:
        return column
    missing = f" Left out: {format_count(role.missing, 'client')} without any." if role.missing else ""
    description = name_samples(column.description, role.name) + missing
    return column._replace(description=description, sample_attrs={"samples": role.name, "missing": role.missing})


def name_samples(description: str, role: str) -> str:
    """Replace "test samples" in a description by the samples of ``role``."""
    return description.replace(f"{TEST} samples", f"{role} samples")


def client_column_info(name: str, role: str = TEST) -> ColumnInfo:
    """Return the description of a column of /clients or /unseen on the samples of ``role``.

    A name may be personal_… or …_after, at other models of the client, or validation_…, on validation samples.
    """
    if name.startswith(VALIDATED):
        column = client_column_info(name.removeprefix(VALIDATED), VALIDATION)
        return column._replace(symbol=name)
    base = name
    description = ""
    for part, words in AT.items():
        if name not in BY_CLIENT and (base.startswith(part) or base.endswith(part)):
            base = base.replace(part, "")
            description += words
    column = BY_CLIENT.get(base, UNKNOWN)
    description += name_samples(column.description, role)
    over = {} if name == "round" else {"samples": role}
    return column._replace(description=description, symbol=column.symbol if name == base else name, sample_attrs=over)


class Columns(dict[str, Array]):
    """Arrays by name. UserError, with the nearest name, for a column that is missing."""

    def __missing__(self, name: str) -> Array:
        raise_unknown("column", name, self)
