"""The promises that hold with options of tables; an option that is not here is refused if a promise is asked for."""

from mpifed.core.promises import OptionPromises, PromisesByOption, Supports, supporting

POOLED = (
    '"pooled", which guarantees privacy for the data after it, or absent, with features that are scaled by constants '
    "known without the data"
)
MEAN = '"mean", which guarantees privacy for the data after it, or "drop"'
# A sample changes others of its client: the guarantee for a client holds, that for a single sample does not.
OF_CLIENT = Supports.EVERYTHING & ~Supports.SAMPLES


def refuse_moved(why: str, right: str) -> str:
    """Return the refusal of a guarantee for single samples where one sample changes others."""
    return (
        f"{why}, and the noise of {{name}} hides one, so with the privacy that {{name}} guarantees it must be {right}"
    )


SENT = "every client sends exact sums of its features before round one, which no noise hides, so with the privacy that "
STANDARDISE: PromisesByOption = {
    # No client could prepare its data like this alone: a guarantee is for the samples after it, which a note says.
    "standardise = pooled": OptionPromises(Supports.EVERYTHING),
    "standardise = own": OptionPromises(
        OF_CLIENT,
        {
            Supports.SAMPLES: refuse_moved(
                "one sample moves the mean and deviation of its client, and so all other samples of it", POOLED
            )
        },
    ),
    # Exact sums travel, once before round one and without regard to order, so that runs repeat.
    "standardise = federated": OptionPromises(
        Supports.REPEATED | Supports.DEVICES,
        {
            Supports.SAMPLES: f"{SENT}{{name}} guarantees it must be {POOLED}",
            Supports.CLIENTS: f'{SENT}{{name}} guarantees it must be "own" or {POOLED}',
        },
    ),
}
MISSING: PromisesByOption = {
    "missing = refuse": OptionPromises(Supports.EVERYTHING),
    # A client knows its complete rows alone; how many are left is a number of samples, which is public.
    "missing = drop": OptionPromises(Supports.EVERYTHING),
    "missing = mean": OptionPromises(Supports.EVERYTHING),  # as for standardise = "pooled"
    "missing = client-mean": OptionPromises(
        OF_CLIENT,
        {
            Supports.SAMPLES: refuse_moved(
                "one sample moves the means of its client, and so others of it, whose cells these fill", MEAN
            )
        },
    ),
}
WEIGHTED = {Supports.PRIVACY: "the privacy that {name} guarantees here is that of samples without"}
COLUMNS: PromisesByOption = {  # of samples, by the names of data.sample_columns
    # Noise is scaled for samples of equal weight.
    "weight": OptionPromises(Supports.EVERYTHING & ~Supports.PRIVACY, WEIGHTED),
    "frequency": OptionPromises(Supports.EVERYTHING & ~Supports.PRIVACY, WEIGHTED),
    # An offset is part of its sample.
    **supporting("offset", "exposure"),
}
TABULAR: PromisesByOption = {
    **STANDARDISE,
    **MISSING,
    # These say which column is what; each row is read without the others.
    **supporting("partition", "test", "target", "client", "time", "event", "above", "features", "ignore", "ones"),
    # COLUMNS has promises of columns of samples, from tables and elsewhere; objective.weights those of client weights.
    **supporting("weight", "frequency", "offset", "exposure", "client_weights"),
    # Classes that a study states do not depend on samples.
    **supporting("classes"),
    # Levels are inferred from all samples, which a note says; their coding changes no other sample.
    **supporting("categories", "levels", "standardise_levels"),
}
