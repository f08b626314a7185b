"""The device of a rank on which PyTorch computes."""

import os
from typing import Any

from mpifed.core import arrays
from mpifed.core.errors import UserError
from mpifed.core.processor import network_threads

# environment variables with the number of this rank on its node
LOCAL_RANKS = ["OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "MV2_COMM_WORLD_LOCAL_RANK"]
LOCAL_RANKS += ["PALS_LOCAL_RANKID", "SLURM_LOCALID"]

# … and with the number of ranks there
LOCAL_COUNTS = ["OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "MV2_COMM_WORLD_LOCAL_SIZE"]
USED_FRACTION = 0.7  # fraction of the free bytes of a GPU for samples and state


def choose_device(name: str, key: str = "problem.device", other: str = '"auto" or "cpu"') -> Any:
    """Choose the device of this rank; if a node has as many GPUs as ranks, each rank gets one.

    UserError if the setting ``key`` asks for a device that is not there; ``other`` names its possible values.
    """
    torch = import_torch()
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


def kernel_device(kernels: str) -> Any:
    """Choose the device of this rank for samples and clients' state with the kernels "torch" or "cuda".

    UserError if there is none.
    """
    arrays.import_array_api()
    return choose_device(
        "cpu" if kernels == "torch" else "cuda", "kernels", '"auto", or "torch" for PyTorch on the CPU'
    )


def free_bytes(device: Any) -> int | None:
    """Return the bytes of a GPU that this rank may fill with samples and state; None, no limit, for the CPU.

    The rest of the free bytes is for computing. Ranks of a node that share a card have equal parts of it.
    """
    if device.type == "cpu":
        return None
    cuda = import_torch().cuda
    local = next((int(os.environ[key]) for key in LOCAL_COUNTS if key in os.environ), 1)
    sharing = -(-local // cuda.device_count())
    return int(USED_FRACTION * cuda.mem_get_info(device)[0] / sharing)


def describe_device(device: Any) -> str:
    """Describe all that the last bits of PyTorch depend on: a card and its CUDA, or the CPU's kernels and threads.

    MKL chooses kernels by the processor; the text names MKL_CBWR if it chooses others than AUTO.
    """
    torch = import_torch()
    if device.type == "cuda":
        return f"{torch.cuda.get_device_name(device)}, CUDA {torch.version.cuda}"
    count = network_threads()
    parts = ["CPU", torch.backends.cpu.get_cpu_capability(), f"{count} thread{'s' if count > 1 else ''}"]
    kernels = os.environ.get("MKL_CBWR", "AUTO")
    return ", ".join(parts if kernels == "AUTO" else [*parts, f"MKL_CBWR={kernels}"])


def import_torch() -> Any:
    """Import torch for a problem; UserError if it is not installed."""
    return arrays.import_torch("this problem needs")
