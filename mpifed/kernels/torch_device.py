"""PyTorch and the device of a rank."""

import os
from typing import Any

from mpifed.core import arrays, threads
from mpifed.core.errors import UserError

# environment variables with the number of this rank on its node
LOCAL_RANKS = ["OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK"]
LOCAL_RANKS += ["PALS_LOCAL_RANKID", "SLURM_LOCALID"]

# … and with how many there are
LOCAL_COUNTS = ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE"]
FILLED = 0.7  # share of the free bytes of a GPU that samples and state may take


def device_of(name: str, key: str = "problem.device", other: str = '"auto" or "cpu"') -> Any:
    """The device of this rank; if a node has as many GPUs as ranks, each rank gets its own.

    UserError where the setting ``key`` asks for one that is not there; ``other`` is what it could be.
    """
    torch = pytorch()
    count = torch.cuda.device_count() if name != "cpu" and torch.cuda.is_available() else 0
    if name == "cuda" and not count:
        wrong = "PyTorch finds no GPU on a node of this run"
        raise UserError(f'{key} = "cuda" is wrong: {wrong}: write {other}')
    if not count:
        return torch.device("cpu")
    torch.cuda.init()
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # else the order of sums in cuBLAS is not fixed
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    local = next((int(os.environ[key]) for key in LOCAL_RANKS if key in os.environ), 0)
    return torch.device("cuda", local % count)


def device(kernels: str) -> Any:
    """The device of this rank on which samples and clients' state live with the kernels "torch" or "cuda".

    UserError where there is none.
    """
    arrays.standard()
    return device_of("cpu" if kernels == "torch" else "cuda", "kernels", '"auto", or "torch" for PyTorch on the CPU')


def free_bytes(device: Any) -> int | None:
    """Bytes of a GPU that this rank may fill with samples and state; None: any number, in the memory of the CPU.

    The rest of what is free is for what is computed. Ranks of a node that share a card have the same part of it.
    """
    if device.type == "cpu":
        return None
    cuda = pytorch().cuda
    local = next((int(os.environ[key]) for key in LOCAL_COUNTS if key in os.environ), 1)
    sharing = -(-local // cuda.device_count())
    return int(FILLED * cuda.mem_get_info(device)[0] / sharing)


def device_text(device: Any) -> str:
    """A device, and what else the last bits of PyTorch depend on there: the card and its CUDA, or kernels and threads.

    MKL has kernels of its own for each processor; where MKL_CBWR chooses others than AUTO it is there too.
    """
    torch = pytorch()
    if device.type == "cuda":
        return f"{torch.cuda.get_device_name(device)}, CUDA {torch.version.cuda}"
    count = threads.of_networks()
    parts = ["CPU", torch.backends.cpu.get_cpu_capability(), f"{count} thread{'s' if count > 1 else ''}"]
    kernels = os.environ.get("MKL_CBWR", "AUTO")
    return ", ".join(parts if kernels == "AUTO" else [*parts, f"MKL_CBWR={kernels}"])


def pytorch() -> Any:
    """The module torch; UserError where it is not installed."""
    return arrays.pytorch("this problem needs")


def first_line(error: BaseException) -> str:
    """Type and message of an error, on one line."""
    return f"{type(error).__name__}: {error}".splitlines()[0].removesuffix(": ")
