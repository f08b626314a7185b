"""python -m benchmarks.speed.gpu_start: what a run on a GPU waits for before round one, part by part, as JSON.

Wall seconds in a new process: imports of mpifed and of PyTorch; the first array on the device, which makes the CUDA
context; the first step of the CNN, which loads kernels, and the second one; the samples of all clients to the device.
"""

import argparse
import importlib
import json
import time
from collections.abc import Callable
from typing import Any


def parts(device: str, tiny: bool) -> dict[str, Callable[[], Any]]:
    """What is done, in this order."""

    def torch() -> Any:
        return importlib.import_module("torch")

    def step() -> None:
        models = importlib.import_module("benchmarks.speed.models")
        case = models.SMALL if tiny else models.CASES["CNN"]
        scores = case.make().to(device)(torch().zeros(10, *case.shape, device=device))
        scores.sum().backward()

    def samples() -> Any:
        models = importlib.import_module("benchmarks.speed.models")
        case = models.SMALL if tiny else models.CASES["CNN"]
        return torch().zeros(case.all * case.samples, *case.shape).to(device, copy=True)

    return {
        "import mpifed": lambda: importlib.import_module("mpifed.experiment.run"),
        "import torch": torch,
        "first array": lambda: torch().zeros(1, device=device),
        "first step": step,
        "second step": step,
        "samples": samples,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"), help="default: cuda")
    parser.add_argument("--tiny", action="store_true", help="a small network on a few samples")
    args = parser.parse_args()
    found = {}
    for name, job in parts(args.device, args.tiny).items():
        begun = time.perf_counter()
        job()
        if args.device == "cuda" and not name.startswith("import"):
            importlib.import_module("torch").cuda.synchronize()
        found[name] = time.perf_counter() - begun
    print(json.dumps(found))


if __name__ == "__main__":
    main()
