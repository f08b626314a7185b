"""Which products multiply with the samples of a run."""

from mpifed.core.arrays import Namespace
from mpifed.kernels.compiled.products import Compiled, CompiledSparse
from mpifed.kernels.products import DENSE, Dense
from mpifed.kernels.sparse_products import CSR
from mpifed.kernels.sparse_tensor_products import SparseTensors
from mpifed.kernels.tensor_products import Tensors


def products_in_memory(kernels: str, sparse: bool) -> Dense:
    """Those of samples in memory, CSR or not, for these kernels: those of devices read them from there."""
    if kernels == "compiled":
        return CompiledSparse() if sparse else Compiled()
    return CSR if sparse else DENSE


def products_on_device(sparse: bool, xp: Namespace, room: int) -> Tensors:
    """Those of samples on the device of ``xp``, in blocks of ``room`` clients."""
    return SparseTensors(xp, room) if sparse else Tensors(xp, room)
