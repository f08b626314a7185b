"""A result as tables of other libraries."""

from typing import Any

import numpy as np

from mpifed.core.errors import needed
from mpifed.core.roles import TEST
from mpifed.results.columns import EVALUATED_ON, Columns, of_client


def data_frame(result: Any) -> Any:
    pandas = needed("pandas", "to_pandas needs pandas: pip install pandas")
    frame = pandas.DataFrame({key: values for key, values in result.rounds.items() if key != "round"})
    frame.index = pandas.Index(result.rounds["round"], name="round")
    return frame


def data_set(result: Any) -> Any:
    """The rounds as an xarray Dataset over ``round``, with units and descriptions; see ``Result.to_xarray``."""
    xarray = needed("xarray", "to_xarray needs xarray: pip install xarray")
    about = {key: {"units": unit, "description": told} for key, (unit, told) in result.about.items()}
    columns: dict[str, Any] = {key: ("round", values, about[key]) for key, values in result.rounds.items()}
    evaluate = result.config.get("evaluate", {})
    for wanted, of, axis in (("clients", "by_client", "client"), ("unseen", "unseen", "unseen")):
        if evaluate.get(wanted):
            role = str(result.attrs.get(EVALUATED_ON[wanted], TEST))
            columns |= over_clients(result, getattr(result, of), axis, role)
    return xarray.Dataset(columns, attrs=result.attrs)


def over_clients(result: Any, evaluated: Columns, axis: str, role: str) -> dict[str, Any]:
    """Tables of clients over all rounds and ``axis``, NaN where a round was not evaluated, over samples of a role."""
    rounds = evaluated["round"]
    # A run that was killed may have written one more: numbers of clients reach the file before the row of their round.
    known = rounds < len(result.rounds["round"])
    found = {}
    for key, values in evaluated.items():
        if values.ndim == 2:
            table = np.full((len(result.rounds["round"]), values.shape[1]), np.nan)
            table[rounds[known]] = values[known]
            meaning = of_client(key, role)
            own = {"units": meaning.unit, "description": meaning.description}
            found[f"{axis}_{key}"] = (("round", axis), table, own)
    return found
