"""A picture of results, as a figure that a notebook shows."""

import io
import os
from collections.abc import Mapping, Sequence
from typing import Any

from mpifed.core.errors import unknown
from mpifed.report import style
from mpifed.report.plot import lines
from mpifed.results.result import Result

OPTIONS = ("log", "width", "title", "band", "rename")


def draw(
    results: Sequence[Result],
    y: str | Sequence[str] | None,
    x: str,
    path: str | os.PathLike[str] | None = None,
    force: bool = False,
    **options: Any,
) -> Any:
    """Columns ``y`` against ``x`` as a figure of matplotlib, also written to ``path``; see ``mpifed.plot``."""
    for name in options:
        if name not in OPTIONS:
            unknown("option", name, OPTIONS)
    if "width" in options:
        options["width"] = style.inches(options["width"], "width =")
    names = options.get("rename")
    if isinstance(names, Mapping):
        options["rename"] = [f"{old}={new}" for old, new in names.items()]
    if y is not None:
        options["y"] = [y] if isinstance(y, str) else list(y)
    if path is not None:
        style.kind(os.fspath(path))
    figure = lines(results, x, **options)
    if path is not None:
        style.save(figure, os.fspath(path), force)

    def png() -> bytes:  # what a notebook shows
        file = io.BytesIO()
        with style.drawing():
            figure.savefig(file, format="png", dpi=150)
        return file.getvalue()

    figure._repr_png_ = png
    return figure
