"""What keys of an experiment file that belong to no component keep, or which feature speaks for them."""

from mpifed.core.promises import Keeps, Option, Options, keeping

ABSENT = {
    Keeps.SUMS: "{name} guarantees privacy here for sums that have the noise of all clients, so it must be absent"
}
DOUBLE = {
    Keeps.DOUBLE: "the privacy that {name} guarantees here covers the rounding errors of double precision, so it must "
    'be "float64"'
}
SHORT = {
    Keeps.SUMS: "{name} guarantees privacy here for sums of uploads that have the noise of all clients, and a sum of "
    "compressed uploads is another one, so it must be absent"
}
# Absent clients lack in a sum with their noise. The rest of [system] is simulated time.
LACKING = Option(Keeps.EVERYTHING & ~Keeps.SUMS, ABSENT)

# key -> what it keeps where it is set. A key that is neither here nor in SPEAKS is refused with every promise.
KEYS: Options = {
    # Rounding may tell more of a sample than noise that is sized for exact numbers hides.
    "dtype": Option(Keeps.EVERYTHING & ~Keeps.DOUBLE, DOUBLE),
    # Sums in any order have other last bits; on the grid of noise that counts on them they are exact.
    "reproducible": Option(Keeps.EVERYTHING & ~(Keeps.BITS | Keeps.RESUME)),
    # What computes, on how many samples at a time, and how sums travel: numbers are the same, time is not private.
    **keeping("kernels", "reduction", "block_bytes", "patience"),
    # Each feature of a user's own speaks for itself.
    **keeping("features"),
    # A model that was trained on the same data has spent privacy before, which a note says.
    **keeping("seed", "rounds", "start"),
    # A clock that is read ends runs after other rounds, and tells nothing of samples beyond timings.
    "stop.seconds": Option(Keeps.EVERYTHING & ~(Keeps.BITS | Keeps.RESUME)),
    # The number of rounds is not private then, which a note says (for diverged docs/privacy.md).
    **keeping("stop.gradient", "stop.gradient_scale", "stop.gradient_relative", "stop.objective_gap", "stop.optimum"),
    **keeping("stop.accuracy", "stop.variance", "stop.rising", "stop.diverged"),
    # As [system]: simulated times follow from numbers of samples.
    **keeping("stop.simulated_seconds"),
    # f, ‖∇f‖² and models are recorded; a note says that models alone may be published.
    **keeping("evaluate.every", "record.models"),
    # Checkpoints hold the state of clients and stay where the run is (docs/privacy.md).
    **keeping("checkpoint.every_seconds", "checkpoint.every_rounds", "checkpoint.keep"),
    # A sum of compressed uploads is no function of the sum of uploads, in which alone there is noise enough.
    "compress.up": Option(Keeps.EVERYTHING & ~Keeps.SUMS, SHORT),
    "system.dropout": LACKING,
    "system.deadline": LACKING,
}

# key or table -> the folder of the feature that speaks for it
SPEAKS: dict[str, str] = {
    "evaluate.clients": "by_client",
    "evaluate.unseen": "unseen",
    "evaluate.unseen_steps": "unseen",
    "evaluate.unseen_step": "unseen",
    "record.personal": "personal_models",
    "objective.weights": "client_weights",
    "objective.l1": "penalty",
    "objective.l2": "penalty",
    "objective.unpenalised": "penalty",
    "system": "simulated_time",
    "asynchronous": "asynchrony",
    "masks": "masks",
    "compress": "compression",
    "graph": "graph",
    "attack": "attack",
    "robust": "robust",
}
