"""What a run keeps of its promises with options of tables. One that is not here is refused with them."""

from mpifed.core.promises import Keeps, Option, Options, keeping

POOLED = (
    '"pooled", which guarantees privacy for the data after it, or absent, with features that are scaled by constants '
    "known without the data"
)
MEAN = '"mean", which guarantees privacy for the data after it, or "drop"'
# One sample moves others of its client: all of a client is protected all the same, a single sample is not.
OF_CLIENT = Keeps.EVERYTHING & ~Keeps.SAMPLES


def moved(why: str, right: str) -> str:
    """The sentence that noise for one sample does not hide several."""
    return (
        f"{why}, and the noise of {{name}} hides one, so with the privacy that {{name}} guarantees it must be {right}"
    )


SENT = "every client sends exact sums of its features before round one, which no noise hides, so with the privacy that "
STANDARDISE: Options = {
    # Preparations that no client could make alone: a guarantee is for the samples after them, which a note says.
    "standardise = pooled": Option(Keeps.EVERYTHING),
    "standardise = own": Option(
        OF_CLIENT,
        {
            Keeps.SAMPLES: moved(
                "one sample moves the mean and deviation of its client, and so all other samples of it", POOLED
            )
        },
    ),
    # Exact sums travel. They are sent before round one and in any order alike, so that runs repeat.
    "standardise = federated": Option(
        Keeps.REPEATED | Keeps.DEVICES,
        {
            Keeps.SAMPLES: f"{SENT}{{name}} guarantees it must be {POOLED}",
            Keeps.CLIENTS: f'{SENT}{{name}} guarantees it must be "own" or {POOLED}',
        },
    ),
}
MISSING: Options = {
    "missing = refuse": Option(Keeps.EVERYTHING),
    # Which rows are complete is known to their client; how many are left is a number of samples, which is public.
    "missing = drop": Option(Keeps.EVERYTHING),
    "missing = mean": Option(Keeps.EVERYTHING),  # as standardise = "pooled"
    "missing = client-mean": Option(
        OF_CLIENT,
        {
            Keeps.SAMPLES: moved(
                "one sample moves the means of its client, and so others of it, whose cells these fill", MEAN
            )
        },
    ),
}
WEIGHTED = {Keeps.PRIVACY: "the privacy that {name} guarantees here is that of samples without"}
COLUMNS: Options = {  # of samples, by the names of data.sample_columns
    # Noise is sized for samples that count alike.
    "weight": Option(Keeps.EVERYTHING & ~Keeps.PRIVACY, WEIGHTED),
    "frequency": Option(Keeps.EVERYTHING & ~Keeps.PRIVACY, WEIGHTED),
    # What is added to the score of a sample is a part of that sample.
    **keeping("offset", "exposure"),
}
TABULAR: Options = {
    **STANDARDISE,
    **MISSING,
    # Which columns and rows of the table are whose samples, labels and features: read row by row.
    **keeping("partition", "test", "target", "client", "time", "event", "above", "features", "ignore", "ones"),
    # Columns of samples speak when they are read, those of an array or a program too; weights of clients by
    # objective.weights.
    **keeping("weight", "frequency", "offset", "exposure", "client_weights"),
    # How labels are read: what a study states, no sample says.
    **keeping("classes"),
    # Levels are those that occur in all samples, which a note says; how they are coded changes no other sample.
    **keeping("categories", "levels", "standardise_levels"),
}
