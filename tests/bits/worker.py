"""Run studies, on all ranks that were started together, and write their hashes; started by record.py."""

import json
import sys
import warnings
from pathlib import Path

import mpifed
from tests.bits.parts import Hashes, parts
from tests.bits.pinned import kernels
from tests.bits.special import Study, every


def run(study: Study, folder: Path) -> Hashes | None:
    """The hashes of a study, or the sentence that refuses it; None on all ranks but the first."""
    path, table = folder / "run.h5", study.settings
    try:
        if study.first is not None:
            mpifed.run(study.first, path=folder / "first.h5", force=True, progress=False)
            table = {**table, "start": str(folder / "first.h5")}
        begun = {**table, "rounds": study.until or table["rounds"]}
        result = mpifed.run(begun, path=path, force=True, progress=False)
        if study.until:
            result = mpifed.resume(path, {"rounds": table["rounds"]}, progress=False)
    except mpifed.UserError as refusal:
        return {"refused": str(refusal)}
    return None if result is None else parts(path)


def main(names: str, lines: str, folder: str) -> None:
    """Run the studies whose names are in a file, and write a line of JSON for each."""
    warnings.simplefilter("ignore")
    wanted, studies = json.loads(Path(names).read_text("utf-8")), every()
    if {"tensors", "network"} & {kernels(name) for name in wanted}:
        import torch

        torch.set_num_threads(1)
        torch.backends.mkldnn.enabled = False  # it chooses kernels by the processor
    for name in wanted:
        try:
            found = run(studies[name], Path(folder))
        except Exception as error:  # in one process the others go on; on several mpifed has ended all ranks
            found = {"failed": f"{type(error).__name__}: {error}"}
        if found is not None:
            with open(lines, "a", encoding="utf-8") as file:
                file.write(json.dumps([name, found]) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
