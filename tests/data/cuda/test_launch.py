"""What is given to a GPU: pointers and sizes, as the kernels expect them, from arrays that say where they are."""

import re
from types import SimpleNamespace

import numpy as np
import pytest

from mpifed.data.cuda import device
from mpifed.data.cuda.device import Device

pytestmark = [
    pytest.mark.fast,
    pytest.mark.skipif(not device.installed(), reason="numba-cuda is not there: pip install mpifed[cuda]"),
]


class OnDevice:
    """An array that says where it is on a device, without one; ``array`` has its shape and order."""

    def __init__(self, array, address=4096):
        self.shape = array.shape
        strides = None if array.flags.c_contiguous else array.strides
        facts = {"shape": array.shape, "typestr": array.dtype.str, "strides": strides, "version": 2}
        self.__cuda_array_interface__ = facts | {"data": (address, False)}

    def __getitem__(self, row):
        return self


def test_pointers_are_those_of_the_arrays_interface():
    gpu = Device(np.dtype("float32"), None)
    assert gpu.pointer(OnDevice(np.zeros((2, 3), "float32"), 512), "X") == 512
    strided = OnDevice(np.zeros((2, 3), "float32"))
    strided.__cuda_array_interface__["strides"] = (12, 4)
    assert gpu.pointer(strided, "X") == 4096
    for array, sentence in (
        (np.zeros(3), "X: the array must be on a GPU, and is a ndarray"),
        (OnDevice(np.zeros(3)), "X: the numbers must be float32, and are float64"),
        (OnDevice(np.zeros((3, 4), "float32")[:, ::2]), "X: the array must be contiguous"),
        (OnDevice(np.zeros((3, 4), "float32").T), "X: the array must be contiguous"),
    ):
        with pytest.raises(ValueError, match=f"^{sentence}$"):
            gpu.pointer(array, "X")


@pytest.fixture
def launched(monkeypatch):
    """What launches give to the driver: name, configuration and arguments."""
    found = []

    class Recorder:
        def __init__(self, which):
            self.which = which

        def __getitem__(self, configuration):
            return lambda *arguments: found.append((self.which, configuration, arguments))

    monkeypatch.setattr(device, "kernel", lambda which, name: Recorder(which))
    return found


def as_driven(signature, arguments):
    """The arguments as numba hands them to the driver: whole numbers of 32 bits, and pointers or numbers of 64."""
    from numba.cuda.dispatcher import _Kernel

    bare = _Kernel.__new__(_Kernel)  # one that is made needs a device
    bare.extensions = ()
    driven = []
    for kind, argument in zip(signature.args, arguments, strict=True):
        bare._prepare_args(kind, argument, 0, [], driven)
    return ["u32" if type(word).__name__ == "c_uint" else "u64" for word in driven]


@pytest.mark.slow
@pytest.mark.parametrize("features", [20, 2000])
def test_arguments_are_those_that_the_compiled_kernels_take(features, launched, monkeypatch):
    from numba import cuda
    from numba.cuda import dispatcher

    from mpifed.data.cuda import kernels, tree
    from mpifed.data.cuda.launch import Kernels, Model

    gpu = Device(np.dtype("float32"), lambda shape: OnDevice(np.zeros(shape, "float32")))
    found = Kernels(Model("logistic"), gpu)
    arrays = [gpu.empty(shape) for shape in ((300, 8, features), (300, 8), (300, 8), (300,))]
    clients = found.clients(*arrays)
    found.gradients(clients, gpu.empty((features,)))
    found.steps(clients, gpu.empty((features,)), gpu.empty((5,)), gpu.empty((300, features)))
    tree.tree_sum(gpu, gpu.empty((300, features)))
    place = "staged" if features == 20 else "placed"
    assert [which for which, *_ in launched] == [f"gradients_{place}", f"steps_{place}", "subtree", "subtree"]
    assert [configuration[0] for _, configuration, _ in launched] == [
        300,
        300,
        3 * -(-features // 32),
        -(-features // 32),
    ]
    monkeypatch.setattr(dispatcher, "get_current_device", lambda: SimpleNamespace(compute_capability=(9, 0)))
    for which, configuration, arguments in launched[:3]:
        module = tree if which == "subtree" else kernels
        signature = module.signature("float32")
        code, _ = cuda.compile_ptx(getattr(module, which), signature.args, cc=(9, 0))
        head = code[code.index(".entry") : code.index(")", code.index(".entry"))]
        assert as_driven(signature, arguments) == re.findall(r"\.param \.(u\d\d)", head)
        assert configuration[1] <= 512
        assert configuration[3] <= 48 << 10
