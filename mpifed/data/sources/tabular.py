"""What data of tables have in common: which columns are what, and how they become features."""

from typing import Annotated, ClassVar, Literal

import numpy as np
from msgspec import Meta

from mpifed.core.errors import UserError
from mpifed.core.toml import toml_value
from mpifed.core.typing import Count
from mpifed.data.dataset import Data, Dataset, WithOnes
from mpifed.data.formats.arrays import read_samples
from mpifed.data.labels import about_texts
from mpifed.data.partition import Iid, Partition
from mpifed.data.pool import Classes, Pool, deal_stated
from mpifed.data.sample_columns import COLUMNS, added, combined, counting, in_order, one_for_each
from mpifed.data.standardise import How, Standardised
from mpifed.data.tables import samples
from mpifed.data.tables.became import became
from mpifed.data.tables.coding import coded, names_of, numbering, train_notes
from mpifed.data.tables.kept import TABULAR
from mpifed.data.tables.missing import Known, fill, known_rows, rows_of
from mpifed.data.tables.roles import Roles, roles_of
from mpifed.data.tables.samples import Owned
from mpifed.data.tables.table import Column, Key, Table

Keys = list[int | str] | int | str
Share = Annotated[float, Meta(ge=0, lt=1)]


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
        Count | None,
        Meta(description="number of clients m (default: that of the file's sizes or client column, else 128)"),
    ] = None  # type: ignore[assignment]
    usual: ClassVar[Partition] = Iid()
    partition: Partition | None = None
    test: Annotated[
        Share | str,
        Meta(description="share of each client's samples kept for testing, or the column that says train or test"),
    ] = 0.0
    target: Annotated[
        Key | None, Meta(description="column of y in a table, by name or number from 0 (default: the last)")
    ] = None
    client: Annotated[Key | None, Meta(description="column of a table that says which client a row belongs to")] = None
    time: Annotated[Key | None, Meta(description="column of times: the label is one with its event")] = None
    event: Annotated[Key | None, Meta(description="column that is 1 where the event came at that time, else 0")] = None
    weight: Annotated[Key | None, Meta(description="column of prior weights: of how little a label varies")] = None
    frequency: Annotated[Key | None, Meta(description="column that says how many samples a row stands for")] = None
    offset: Annotated[Key | None, Meta(description="column that is added to the scores")] = None
    exposure: Annotated[
        Key | None, Meta(description="column of times or numbers at risk, whose logarithm is added to the scores")
    ] = None
    client_weights: Annotated[
        Key | None, Meta(description="column of the weight of each row's client, which objective.weights names")
    ] = None
    classes: Classes = None
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
        How | None,
        Meta(
            description="features with mean 0 and deviation 1 in the training samples: of all, of each client, or of "
            "all by sums that clients send (default: as they are)"
        ),
    ] = None
    standardise_levels: Annotated[bool, Meta(description="standardise the columns of categories, too")] = False
    ones: Annotated[bool, Meta(description="append a column of ones: the last parameter is an intercept")] = False

    def test_column(self) -> str | None:
        """The column that says which rows are for testing, if ``test`` names one."""
        return self.test if isinstance(self.test, str) else None

    def of_table(self, table: Table, seed: int, dtype: str) -> Dataset:
        """The data set of a table; UserError where its columns are not what the options say."""
        roles = roles_of(self, table)
        columns, lost, left_out = self.read_columns(table, roles)
        y, about = samples.labels(table, roles, columns, self.above)
        own = samples.owned(table, roles, columns)
        if own.client is not None:
            has = "has a column" if "client" in roles.special else "are"
            samples.contradiction(len(own.names), self, table.source, has)
        made = coded(table, {k: columns[k] for k in roles.features}, roles.categories, self.levels, lost)
        X, y = read_samples({"X": made.X, "y": y}, table.source, "", texts=True)
        train, test = samples.split(X, y, own, self.clients or 128)
        pool = deal_stated(self, train, test, seed, dtype, table.source)
        pool.inferred = table.inferred
        name_labels(pool, table, roles, columns)
        if own.client is not None:
            named = f"the column {toml_value(self.client)}" if "client" in roles.special else "the files"
            pool.division = f"by {named}"
        pool.features = names_of(made.features)
        pool.table = made.features
        pool.owners = own.names
        self.add_columns(pool, table, roles, columns, own)
        if "mean" in self.missing:
            fill(pool, pool.features, self.missing == "client-mean")
        # Of training samples: what holds in all of them a run learns, whatever test samples are like.
        trained = train_notes(made.features, pool.train.X, rows_of(pool.train)[0])
        read = (*left_out, *table.notes(), *about, *made.notes, *samples.alike(own.names))
        pool.notes = (became(table, roles, made.features), *pool.notes, *read)
        pool.notes += (*numbering(made.features, X, table.source), *trained)
        return self.prepared(pool)

    def read_columns(self, table: Table, roles: Roles) -> tuple[dict[int, Column], dict[int, int], tuple[str, ...]]:
        """The columns that are used, without rows that are dropped; missing cells of each; and notes on what was."""
        special = list(roles.special.values())
        wanted = sorted({*roles.features, *special})
        # Names of clients stay as they are written, 007 apart from 7, where a file does not say that they are numbers.
        names = [roles.special["client"]] if table.written and "client" in roles.special else []
        whole = dict(zip(wanted, table.read(wanted, [*roles.categories, *names]), strict=True))
        if not len(whole[wanted[0]].values):
            raise UserError(f"{table.source} has no rows: each is a sample")
        known = with_weight(known_rows(table, whole, special, self.missing), table, roles, whole)
        table.kept = np.flatnonzero(known.rows)
        columns = whole
        if len(table.kept) < len(known.rows):
            columns = {k: column.rows(table.kept) for k, column in whole.items()}
        gone: tuple[str, ...] = ()
        if "client" in roles.special:
            k = roles.special["client"]
            gone = samples.without_rows(table, k, whole[k], columns[k])
        return columns, known.lost, (*known.notes, *gone)

    def add_columns(self, pool: Pool, table: Table, roles: Roles, columns: dict[int, Column], own: Owned) -> None:
        """Weights and offsets of samples and weights of clients, where columns have them."""
        special = roles.special
        given = {name: columns[special[name]].plain() for name in COLUMNS if name in special}

        def called(name: str) -> str:
            key = "objective.weights" if name == "client_weights" else f"data.{name}"
            return f"{table.called(special[name])} of {table.source}, {key},"

        # Row numbers in place of samples: they are divided as the samples were, and say where each of these came from.
        rows = np.arange(len(columns[next(iter(columns))].values))
        train, test = samples.split(rows, rows, own, pool.m)
        if given:
            values = combined(given, called, table.row)
            others = None if test is None else values[:, test.X]
            added(pool, in_order(tuple(given), values[:, train.X], others, pool))
        if "client_weights" in special:
            column = columns[special["client_weights"]].plain()[train.X]
            pool.client_weights = one_for_each(column, pool, called("client_weights"))

    def prepared(self, dataset: Dataset) -> Dataset:
        """The data set with features as ``standardise`` and ``ones`` say."""
        if self.standardise is not None:
            dataset = Standardised(dataset, self.standardise, self.standardise_levels)
        return WithOnes(dataset) if self.ones else dataset


def with_weight(known: Known, table: Table, roles: Roles, columns: dict[int, Column]) -> Known:
    """The rows to keep without those whose weight or frequency is 0, of which a note says how many there are.

    UserError where none is left.
    """
    given = {name: columns[k].plain() for name, k in roles.special.items() if name in ("weight", "frequency")}
    if not given:
        return known
    zero = known.rows & ~counting(given)
    if not zero.any():
        return known
    name = next(iter(given))
    called = f"{table.called(roles.special[name])} of {table.source}, data.{name}"
    if not (known.rows & ~zero).any():
        raise UserError(f"{called}, is 0 in every row, so no sample counts: leave data.{name} out")
    note = f"{int(zero.sum()):,} of {len(zero):,} rows are left out, for {called}, is 0 there"
    return known._replace(rows=known.rows & ~zero, notes=(*known.notes, note))


def name_labels(pool: Pool, table: Table, roles: Roles, columns: dict[int, Column]) -> None:
    """Let the note on labels that are texts, the last one, name their column; times are no classes.

    Texts of a category that has an order are numbered in that order.
    """
    if pool.names and "target" in roles.special and not pool.stated:
        column = columns[roles.special["target"]]
        if column.ordered:
            assert column.texts is not None
            names = tuple(text for text in column.texts if text in pool.names)
            number = np.array([names.index(name) for name in pool.names])
            y = number[pool.train.y]
            if pool.test is not None:
                pool.test = pool.test._replace(y=y if pool.test.y is pool.train.y else number[pool.test.y])
            pool.train = pool.train._replace(y=y)
            pool.names = names
        order = "the order of its categories" if column.ordered else "sorted order"
        pool.notes = (*pool.notes[:-1], about_texts(pool.names, table.called(roles.special["target"]), order))
    if "time" in roles.special:
        pool.classes = 0
