"""The settings of a run as command-line overrides spell them, and which of them its summary shows."""

from typing import Any

from mpifed.core.toml import flat, toml_value
from mpifed.results.result import Result

ALWAYS = ("seed", "rounds", "data", "data.clients")  # shown whatever their values
WHOLE = ("data.partition", "problem", "algorithm", "selection")  # tables whose keys are all shown


def overrides(table: dict[str, Any]) -> dict[str, str]:
    """A configuration as command-line overrides spell it: ``algorithm`` for ``algorithm.name``."""
    plain = {key.removesuffix(".name"): value for key, value in flat(table).items()}
    return {key: short(value) for key, value in plain.items()}


def short(value: Any) -> str:
    """A value as TOML has it, but a word without quotes, and 1e+12 for 1000000000000.0."""
    if isinstance(value, str) and value != "" and " " not in value:
        return value
    text = f"{value:e}".replace(".000000", "") if isinstance(value, float) else ""
    return text if text and len(text) < len(toml_value(value)) and float(text) == value else toml_value(value)


def shown(result: Result, everything: bool = False) -> dict[str, str]:
    """The settings that a summary shows: names, the options of the method, and what is not at its default.

    All of them with ``everything``, and where the file does not say which are at their defaults.
    """
    settings = overrides(result.config)
    if everything or "changed" not in result.attrs:
        return settings
    named = (*ALWAYS, *WHOLE, *str(result.attrs["changed"]).split())
    inside = tuple(f"{table}." for table in WHOLE)
    return {key: value for key, value in settings.items() if key in named or key.startswith(inside)}
