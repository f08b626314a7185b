"""Base of data from tables: the roles of columns, and how these become features."""

from collections.abc import Sequence
from typing import Annotated, ClassVar, Literal

import numpy as np
from msgspec import Meta

from mpifed.core.errors import UserError
from mpifed.core.promises import OptionPromises, PromisesByOption, Supports, supporting
from mpifed.core.roles import TEST, VALIDATION
from mpifed.core.toml import toml_value
from mpifed.core.typing import PositiveInt
from mpifed.data.dataset import Data, Dataset, TableFeature, WithOnes
from mpifed.data.formats.arrays import read_samples
from mpifed.data.labels import SHOWN, abridge, note_text_labels, shorten
from mpifed.data.partition import Iid, Partition
from mpifed.data.pool import ClassesOption, Pool, make_pool_with_classes, refuse_contradiction
from mpifed.data.sample_columns import (
    COLUMNS,
    attach_columns,
    columns_of_pool,
    combine_columns,
    find_nonzero_weights,
    reduce_to_clients,
)
from mpifed.data.split import Amount, Stratify, ValidationAmount
from mpifed.data.standardise import StandardisedDataset, StandardiseMethod
from mpifed.data.tables.features import (
    RowSelection,
    code_columns,
    fill,
    list_names,
    list_rows,
    note_row_numbers,
    note_training,
    select_rows,
)
from mpifed.data.tables.roles import (
    WORDS,
    Roles,
    RowOwners,
    find_owners,
    find_roles,
    note_lost_clients,
    note_similar_names,
    read_labels,
    split_samples,
)
from mpifed.data.tables.table import ColumnKey, DataTable, TableColumn

Keys = list[int | str] | int | str

POOLED = (
    '"pooled", which guarantees privacy for the data after it, or absent, with features that are scaled by constants '
    "known without the data"
)
MEAN = '"mean", which guarantees privacy for the data after it, or "drop"'
MOVED = ", and the noise of {name} hides one, so with the privacy that {name} guarantees it must be "
SENT = (
    "every client sends exact sums of its features before round one, which no noise hides, so with the privacy that "
    "{name} guarantees it must be "
)
OWN = "one sample moves the mean and deviation of its client, and so all other samples of it"
FILLED = "one sample moves the means of its client, and so others of it, whose cells these fill"
# A sample changes others of its client: the guarantee for a client holds, that for a single sample does not.
OF_CLIENT = Supports.EVERYTHING & ~Supports.SAMPLES
# The promises that hold with options of tables; an option that is not here is refused if a promise is asked for.
TABULAR: PromisesByOption = {
    # No client could prepare its data like this alone: a guarantee is for the samples after it, which a note says.
    "standardise = pooled": OptionPromises(Supports.EVERYTHING),
    "standardise = own": OptionPromises(OF_CLIENT, {Supports.SAMPLES: f"{OWN}{MOVED}{POOLED}"}),
    # Exact sums travel, once before round one and without regard to order, so that runs repeat.
    "standardise = federated": OptionPromises(
        Supports.REPEATED | Supports.DEVICES,
        {Supports.SAMPLES: f"{SENT}{POOLED}", Supports.CLIENTS: f'{SENT}"own" or {POOLED}'},
    ),
    # A client knows its complete rows alone; how many are left is a number of samples, which is public.
    **supporting("missing = refuse", "missing = drop"),
    "missing = mean": OptionPromises(Supports.EVERYTHING),  # as for standardise = "pooled"
    "missing = client-mean": OptionPromises(OF_CLIENT, {Supports.SAMPLES: f"{FILLED}{MOVED}{MEAN}"}),
    # These say which column is what; each row is read without the others.
    **supporting("partition", "test", "validation", "stratify"),
    **supporting("target", "client", "time", "event", "above", "features", "ignore", "ones"),
    # COLUMN_PROMISES has those of columns of samples; objective.weights those of client weights.
    **supporting("weight", "frequency", "offset", "exposure", "client_weights"),
    # Classes that a study states do not depend on samples.
    **supporting("classes"),
    # Levels are inferred from all samples, which a note says; their coding changes no other sample.
    **supporting("categories", "levels", "standardise_levels"),
}


class Tabular(Data):
    """Base of data from tables: one sample a row, columns by name or, in a table without header, by number from 0."""

    options = TABULAR

    refused: ClassVar[dict[str, str]] = {
        "label": "the column of the labels is data.target (or data.time and data.event)",
        "labels": "a table has one column of labels, data.target (or data.time and data.event)",
        "weights": "the column of the weights of samples is data.weight, of how many alike a row stands for "
        "data.frequency; objective.weights are those of clients",
    }

    clients: Annotated[
        PositiveInt | None,
        Meta(description="number of clients m (default: that of the file's sizes or client column, else 128)"),
    ] = None  # type: ignore[assignment]
    default_partition: ClassVar[Partition] = Iid()
    partition: Partition | None = None
    test: Annotated[
        Amount | str,
        Meta(
            description="share or number of each client's samples kept for testing, or the column that says train, "
            "validation or test"
        ),
    ] = 0.0
    validation: ValidationAmount = 0.0
    stratify: Stratify = False
    target: Annotated[
        ColumnKey | None, Meta(description="column of y in a table, by name or number from 0 (default: the last)")
    ] = None
    client: Annotated[
        ColumnKey | None, Meta(description="column of a table that says which client a row belongs to")
    ] = None
    time: Annotated[ColumnKey | None, Meta(description="column of times: the label is one with its event")] = None
    event: Annotated[
        ColumnKey | None, Meta(description="column that is 1 where the event came at that time, else 0")
    ] = None
    weight: Annotated[ColumnKey | None, Meta(description="column of prior weights: of how little a label varies")] = (
        None
    )
    frequency: Annotated[ColumnKey | None, Meta(description="column that says how many samples a row stands for")] = (
        None
    )
    offset: Annotated[ColumnKey | None, Meta(description="column that is added to the scores")] = None
    exposure: Annotated[
        ColumnKey | None, Meta(description="column of times or numbers at risk, whose logarithm is added to the scores")
    ] = None
    client_weights: Annotated[
        ColumnKey | None, Meta(description="column of the weight of each row's client, which objective.weights names")
    ] = None
    classes: ClassesOption = None
    above: Annotated[float | None, Meta(description="labels become 1 above this number, else 0")] = None
    features: Annotated[Keys | None, Meta(description="columns of features (default: all others)")] = None
    ignore: Annotated[Keys | None, Meta(description="columns that are not read")] = None
    categories: Annotated[
        Keys | None, Meta(description="columns with numbers that are categories, as those of texts are")
    ] = None
    levels: Annotated[
        Literal["drop-first", "all"],
        Meta(description="levels of a category with a column of zeros and ones: all, or all but the first one"),
    ] = "drop-first"
    missing: Annotated[
        Literal["refuse", "drop", "mean", "client-mean"],
        Meta(description="missing cells: refused, their rows dropped, or filled with means of the training samples"),
    ] = "refuse"
    standardise: Annotated[
        StandardiseMethod | None,
        Meta(
            description="features with mean 0 and deviation 1 in the training samples: of all, of each client, or of "
            "all by sums that clients send (default: as they are)"
        ),
    ] = None
    standardise_levels: Annotated[bool, Meta(description="standardise the columns of categories, too")] = False
    ones: Annotated[bool, Meta(description="append a column of ones: the last parameter is an intercept")] = False

    def test_column(self) -> str | None:
        """Return the column that says the role of each row, if ``test`` names one."""
        return self.test if isinstance(self.test, str) else None

    def load_table(self, table: DataTable, seed: int, dtype: str) -> Dataset:
        """Return the data set of a table; UserError where its columns are not what the options say."""
        roles = find_roles(self, table)
        columns, missing, row_notes = self.read_columns(table, roles)
        y, label_notes = read_labels(table, roles, columns, self.above)
        owners = find_owners(table, roles, columns)
        if owners.client is not None:
            has = "has a column" if "client" in roles.special else "are"
            refuse_contradiction(self, len(owners.names), table.source, has)
        if self.validation and VALIDATION in owners.roles():
            column = f"{table.cite(roles.special[TEST])} of {table.source}"
            raise UserError(
                f"data.validation = {self.validation} contradicts {column}, which has validation rows: leave it out"
            )
        coded = code_columns(table, {k: columns[k] for k in roles.features}, roles.categories, self.levels, missing)
        X, y = read_samples({"X": coded.X, "y": y}, table.source, "", texts=True)
        train, held = split_samples(X, y, owners, self.clients or 128)
        pool = make_pool_with_classes(self, train, held, seed, dtype, table.source)
        pool.inferred = table.inferred
        name_labels(pool, table, roles, columns)
        if owners.client is not None:
            pool.division = f"by the column {toml_value(self.client)}" if "client" in roles.special else "by the files"
        pool.features = list_names(coded.features)
        pool.table = coded.features
        pool.owners = owners.names
        self.add_columns(pool, table, roles, columns, owners)
        if "mean" in self.missing:
            fill(pool, pool.features, self.missing == "client-mean")
        # Notes on training samples alone, because a run learns from these.
        trained = note_training(coded.features, pool.train.X, list_rows(pool.train)[0])
        read = (*row_notes, *table.notes(), *label_notes, *coded.notes, *note_similar_names(owners.names))
        pool.notes = (describe_columns(table, roles, coded.features), *pool.notes, *read)
        pool.notes += (*note_row_numbers(coded.features, X, table.source), *trained)
        return self.transform_features(pool)

    def read_columns(
        self, table: DataTable, roles: Roles
    ) -> tuple[dict[int, TableColumn], dict[int, int], tuple[str, ...]]:
        """Return the columns in use without dropped rows, the number of missing cells of each, and notes on these."""
        special = list(roles.special.values())
        wanted = sorted({*roles.features, *special})
        # Names of clients stay as written, so that 007 is not 7, where a file does not say that they are numbers.
        names = [roles.special["client"]] if table.written and "client" in roles.special else []
        full = dict(zip(wanted, table.read(wanted, [*roles.categories, *names]), strict=True))
        if not len(full[wanted[0]].values):
            raise UserError(f"{table.source} has no rows: each is a sample")
        selection = drop_zero_weights(select_rows(table, full, special, self.missing), table, roles, full)
        table.rows_in_use = np.flatnonzero(selection.rows)
        columns = full
        if len(table.rows_in_use) < len(selection.rows):
            columns = {k: column.rows(table.rows_in_use) for k, column in full.items()}
        lost_clients: tuple[str, ...] = ()
        if "client" in roles.special:
            k = roles.special["client"]
            lost_clients = note_lost_clients(table, k, full[k], columns[k])
        return columns, selection.missing, (*selection.notes, *lost_clients)

    def add_columns(
        self, pool: Pool, table: DataTable, roles: Roles, columns: dict[int, TableColumn], own: RowOwners
    ) -> None:
        """Give a pool the weights and offsets of samples and the weights of clients that columns have, in place."""
        special = roles.special
        of_samples = {name: columns[special[name]].decode() for name in COLUMNS if name in special}

        def label(name: str) -> str:
            key = "objective.weights" if name == "client_weights" else f"data.{name}"
            return f"{table.cite(special[name])} of {table.source}, {key},"

        # Row numbers are divided as the samples were, and so tell the row of each sample.
        rows = np.arange(len(columns[next(iter(columns))].values))
        train, held = split_samples(rows, rows, own, pool.m)
        if of_samples:
            values = combine_columns(of_samples, label, table.cite_row)
            others = {role: values[:, part.X] for role, part in held.items()}
            attach_columns(pool, columns_of_pool(tuple(of_samples), values[:, train.X], others, pool))
        if "client_weights" in special:
            column = columns[special["client_weights"]].decode()[train.X]
            pool.client_weights = reduce_to_clients(column, pool, label("client_weights"))

    def transform_features(self, dataset: Dataset) -> Dataset:
        """Return the data set with features standardised and with a column of ones, where options say so."""
        if self.standardise is not None:
            dataset = StandardisedDataset(dataset, self.standardise, self.standardise_levels)
        return WithOnes(dataset) if self.ones else dataset


def drop_zero_weights(
    selection: RowSelection, table: DataTable, roles: Roles, columns: dict[int, TableColumn]
) -> RowSelection:
    """Return the rows to keep without those of weight or frequency 0, with a note; UserError where no row is left."""
    weights = {name: columns[k].decode() for name, k in roles.special.items() if name in ("weight", "frequency")}
    if not weights:
        return selection
    zero = selection.rows & ~find_nonzero_weights(weights)
    if not zero.any():
        return selection
    name = next(iter(weights))
    label = f"{table.cite(roles.special[name])} of {table.source}, data.{name}"
    if not (selection.rows & ~zero).any():
        raise UserError(f"{label}, is 0 in every row, so no sample counts: leave data.{name} out")
    note = f"{int(zero.sum()):,} of {len(zero):,} rows are left out, for {label}, is 0 there"
    return selection._replace(rows=selection.rows & ~zero, notes=(*selection.notes, note))


def name_labels(pool: Pool, table: DataTable, roles: Roles, columns: dict[int, TableColumn]) -> None:
    """Number text labels in the order of their category, name their column in the last note; times are no classes."""
    if pool.names and "target" in roles.special and not pool.stated:
        column = columns[roles.special["target"]]
        if column.ordered:
            assert column.texts is not None
            names = tuple(text for text in column.texts if text in pool.names)
            number = np.array([names.index(name) for name in pool.names])
            pool.samples = {role: part._replace(y=number[part.y]) for role, part in pool.samples.items()}
            pool.names = names
        order = "the order of its categories" if column.ordered else "sorted order"
        pool.notes = (*pool.notes[:-1], note_text_labels(pool.names, table.cite(roles.special["target"]), order))
    if "time" in roles.special:
        pool.classes = 0


def describe_columns(table: DataTable, roles: Roles, features: Sequence[TableFeature]) -> str:
    """Return a note on the role of each column: features, levels of categories and their reference, and the rest."""
    numbers = [repr(shorten(one.name)) for one in features if not one.category]
    categories = [f"{shorten(one.name)!r} ({list_levels(one)})" for one in features if one.category]
    special: dict[int, list[str]] = {}
    for role, k in roles.special.items():
        special.setdefault(k, []).append(WORDS[role])
    used = {*special, *roles.features}
    rest = [k for k in range(len(table.names)) if k not in used]
    clauses = [
        f"features {list_words(numbers)}" if numbers else "",
        f"categories {list_words(categories)}" if categories else "",
        *(f"{' and '.join(words)} {quote_column(table, k)}" for k, words in special.items()),
        f"left out {list_words([quote_column(table, k) for k in rest])}" if rest else "",
    ]
    return f"columns: {'; '.join(filter(None, clauses))}"


def quote_column(table: DataTable, k: int) -> str:
    aside = " (names of rows)" if k in table.row_names else ""
    aside = " (in both tables)" if table.key and k == table.positions[table.key] else aside
    return repr(shorten(table.name(k))) + aside


def list_levels(feature: TableFeature) -> str:
    names = [shorten(level) or "''" for level in feature.levels]
    first = [] if feature.dropped is None else [f"reference {shorten(feature.dropped) or repr('')}"]
    return list_words([*first, *names])


def list_words(words: Sequence[str]) -> str:
    """Return words with commas between them; of many the first ones, the last, and their number."""
    return ", ".join(abridge(words)) + (f" ({len(words):,} in all)" if len(words) > SHOWN else "")
