"""Running the cells of a benchmark, several at a time, and the table of ours beside the paper's."""
from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

import mpifed
from mpifed import config
from mpifed.component import UserError


def report(bench: dict[str, Any], seeds: int, only: str, folder: Path, processes: int) -> None:
    """Run every cell and print a table a block."""
    theirs = "the paper's number" if any("paper" in block for block in bench["block"]) else "what others found, no paper's number"
    print(f"{bench['title']}\nmeans ± standard deviation over {seeds} seeds; in brackets {theirs}\n")
    key, values = bench["columns"]["key"], bench["columns"]["values"]
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=spawn) as pool:
        for block in bench["block"]:
            rows = [row for row in block["rows"] if only in f"{block['name']} {row['name']}"]
            if not rows:
                continue
            print(f"{block['name']}", flush=True)
            jobs = {}
            for row in rows:
                study = merge(merge(bench["study"], block["study"]), {k: v for k, v in row.items() if k != "name"})
                for column, value in enumerate(values):
                    for seed in range(seeds):
                        path = folder / slug(f"{block['name']} {row['name']} {key} {value} seed {seed}.h5")
                        point = merge(study, {"seed": seed})
                        assign(point, key, value)
                        jobs[row["name"], column, seed] = pool.submit(outcome, point, path)
            try:
                got = {place: job.result() for place, job in jobs.items()}
            except UserError as reason:
                print(f"  not run: {reason}\n")
                continue
            print(table(bench, block, [row["name"] for row in rows], values, seeds, got), flush=True)
    print(bench["different"].strip())


def outcome(study: dict[str, Any], path: Path) -> dict[str, float]:
    """What one run reached; the run itself where its result file is not there yet."""
    text = config.experiment(study).toml()
    result = mpifed.load(path) if path.exists() else None
    if result is None or result.attrs["config"] != text or result.status != "finished":
        path.parent.mkdir(parents=True, exist_ok=True)
        result = mpifed.run(study, path, force=True)
    assert result is not None
    return {name: float(column[-1]) for name, column in result.rounds.items()} | {
        "rounds": float(result.cr), "seconds": float(result.tct)}


def table(bench: dict[str, Any], block: dict[str, Any], rows: list[str], values: list[Any], seeds: int, got: Any) -> str:
    """One block: a line a row, ours ± sd [paper's] for every measure and column."""
    theirs = block.get("paper") or block.get("reference") or {}
    head = [bench["columns"]["key"].split(".")[-1] + f" = {value}" for value in values]
    lines = []
    for measure in bench["measures"]:
        cells = [[measure, *head]]
        for row in rows:
            line = [row]
            for column in range(len(values)):
                ours = np.array([got[row, column, seed][measure] for seed in range(seeds)])
                paper = theirs.get(row, {}).get(measure)
                spread = ours.std(ddof=1) if len(ours) > 1 else 0.0
                line.append(f"{figure(ours.mean())} ± {figure(spread)}" + (f" [{paper[column]:g}]" if paper else ""))
            cells.append(line)
        widths = [max(len(line[k]) for line in cells) for k in range(len(head) + 1)]
        lines += [aligned(line, widths) for line in cells]
        lines.append("")
    return "\n".join(lines)


def aligned(line: list[str], widths: list[int]) -> str:
    return "  " + "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()


def figure(value: float) -> str:
    return f"{value:.3f}" if value < 10 else f"{value:.1f}"


def merge(base: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """``base`` with the values of ``extra`` put in, table by table."""
    result = dict(base)
    for key, value in extra.items():
        result[key] = merge(result[key], value) if isinstance(value, dict) and isinstance(result.get(key), dict) else value
    return result


def assign(table: dict[str, Any], key: str, value: Any) -> None:
    """Set a dotted key."""
    *parents, last = key.split(".")
    for parent in parents:
        table[parent] = dict(table.get(parent, {}))
        table = table[parent]
    table[last] = value


def slug(text: str) -> str:
    return "".join(c if c.isalnum() or c in ".-" else "-" for c in text.lower())
