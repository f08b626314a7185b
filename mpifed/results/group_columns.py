"""What the columns of /ranks, /clients, /model and /models are; those of /rounds stand in ``columns``."""

from mpifed.results.columns import Column

RANKS: dict[str, Column] = {
    "clients": Column("1", "Clients that live on the rank.", True),
    "samples": Column("1", "Training samples of the clients of the rank.", True),
    "compute_seconds": Column("s", "Local computation of the clients of the rank.", symbol="compute"),
    "comm_seconds": Column("s", "Time in MPI calls.", symbol="mpi"),
    "wait_seconds": Column("s", "Part of the time in MPI calls before the other ranks arrived.", symbol="wait"),
    "evaluate_seconds": Column(
        "s", "Time spent on evaluating the objective and the other recorded quantities.", symbol="eval"
    ),
    "io_seconds": Column("s", "Time spent on writing results.", symbol="io"),
    "mpi_calls": Column("1", "MPI calls.", True, symbol="calls"),
    "mpi_messages_received": Column("1", "Messages received from other ranks.", True, symbol="messages"),
    "mpi_bytes_sent": Column("byte", "Bytes sent to other ranks.", True, symbol="sent"),
    "mpi_bytes_received": Column("byte", "Bytes received from other ranks.", True, symbol="received"),
    "max_rss_bytes": Column("byte", "Peak memory of the process (resident set size).", True, symbol="memory"),
    "shared_bytes": Column(
        "byte",
        "Part of that memory which the ranks of a machine have together: it is there once, not once a rank.",
        True,
        symbol="shared",
    ),
    "threads": Column("1", "Threads that the numerical libraries of the process use.", True),
    "cpus": Column("1", "CPUs that the process may run on, such as 0-3,8; empty where the system does not tell."),
    "hostname": Column("1", "Name of the machine.", symbol="host"),
}

CLIENTS: dict[str, Column] = {
    "samples": Column("1", "Training samples of the client.", True),
    "rank": Column("1", "Rank on which the client lives.", True),
    "times_selected": Column("1", "Rounds in which the client was selected.", True),
    "compute_seconds": Column("s", "Local computation of the client in all rounds."),
}

MODEL: dict[str, Column] = {
    "x": Column("1", "Final model of the server."),
    "personal": Column("1", "Final model of each client."),
}

MODELS: dict[str, Column] = {
    "round": Column("1", "Communication round after which the model was stored.", True),
    "x": Column("1", "Model of the server after the round."),
}
