"""Few rows in place of a product of all values: every pair of values occurs in one of them."""

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, product

Value = tuple[str, str]  # a factor and one of its values
Row = dict[str, str]  # a value of each factor


def pairs(row: Row) -> Iterator[tuple[Value, Value]]:
    """The pairs of values in a row, in the order of its factors."""
    return combinations(row.items(), 2)


def every_row(factors: dict[str, Sequence[str]], forbidden: Callable[[Value, Value], bool]) -> Iterator[Row]:
    """The product of all values, without the rows in which two values do not go together."""
    for values in product(*factors.values()):
        row = dict(zip(factors, values, strict=True))
        if not any(forbidden(*pair) for pair in pairs(row)):
            yield row


def covering(factors: dict[str, Sequence[str]], forbidden: Callable[[Value, Value], bool]) -> list[Row]:
    """Rows in which every pair of values of two factors occurs, without pairs that are ``forbidden``.

    A row begins with the first pair that has not occurred. Every other factor then takes the value with which most
    pairs occur for the first time. ValueError where no value of a factor goes with the others.
    """
    values = [[(name, value) for value in factors[name]] for name in factors]
    every = (pair for one, other in combinations(values, 2) for pair in product(one, other))
    left = dict.fromkeys(pair for pair in every if not forbidden(*pair))
    rows = []
    while left:
        row = dict(next(iter(left)))
        for name in factors:
            if name not in row:
                row[name] = best(name, factors[name], row, left, forbidden)
        row = {name: row[name] for name in factors}
        for pair in pairs(row):
            left.pop(pair, None)
        rows.append(row)
    return rows


def best(name, values, row, left, forbidden):
    """The value of a factor that goes with a row begun and brings most of the pairs that are ``left``."""
    new = {}
    for value in values:
        one = (name, value)
        if not any(forbidden(one, other) or forbidden(other, one) for other in row.items()):
            new[value] = sum((one, other) in left or (other, one) in left for other in row.items())
    if not new:
        raise ValueError(f"no {name} goes with {row}")
    return max(new, key=new.__getitem__)
