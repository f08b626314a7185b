"""Options of a training loop of torch: first parameters from a file, augmentation, half precision."""

import os
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from mpifed.core.errors import UserError
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.kernels.torch_device import first_line, pytorch
from mpifed.networks.torch_augment import Images
from mpifed.networks.torch_layers import Normalisation, frozen, normalising, zeros
from mpifed.problems.problem import Problem

LISTED = 3  # names in a message
STATISTICS = ("running_mean", "running_var", "num_batches_tracked")  # buffers of normalisation layers


def state(path: str) -> dict[str, Any]:
    """The tensors in a file of torch.save(module.state_dict()), or of safetensors, by name, on the CPU.

    UserError where there is no such file, or something else in it. The file is read with weights_only=True, so that no
    code in it runs.
    """
    file = os.path.expanduser(path)
    wrong = f"problem.pretrained = {toml_value(path)} is wrong:"
    if not os.path.isfile(file):
        raise UserError(f"{wrong} there is no such file")
    right = "save it with torch.save(module.state_dict(), PATH)"
    try:
        if file.endswith(".safetensors"):
            from safetensors.torch import load_file as load
        else:
            load = partial(pytorch().load, map_location="cpu", weights_only=True)
        found = load(file)
    except ImportError:
        raise UserError(f"{wrong} it needs safetensors: pip install safetensors") from None
    except Exception as error:  # a file may hold anything
        raise UserError(f"{wrong} it is no file of tensors alone ({first_line(error)[:80]}): {right}") from None
    if not isinstance(found, Mapping):
        raise UserError(f"{wrong} it holds a {type(found).__name__}, and not tensors by their names: {right}")
    others = [name for name, value in found.items() if not pytorch().is_tensor(value)]
    if others or not found:
        raise UserError(f"{wrong} it holds {listed(others) or 'nothing'}, and not tensors alone: {right}")
    return {name: value.detach() for name, value in found.items()}


def listed(names: list[str]) -> str:
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(map(str, names[:LISTED])) + more


def pretrained(module: Any, path: str | None) -> Any:
    """``module`` with the parameters and buffers of the file ``path``; as it is where that is None.

    Names and shapes have to match, but running statistics of normalisation layers that are trained may be absent: they
    are not used. UserError where they do not match.
    """
    if path is None:
        return module
    found = state(path)
    own = module.state_dict()
    wrong = f"problem.pretrained = {toml_value(path)} is wrong:"
    missing = [name for name in own if name not in found and name not in unused(module)]
    if missing:
        raise UserError(f"{wrong} it lacks {listed(missing)} of the network")
    more = [name for name in found if name not in own]
    if more:
        raise UserError(f"{wrong} it has {listed(more)}, which the network does not have")
    for name, value in found.items():
        lazy = pytorch().nn.parameter.is_lazy(own[name])  # it gets its shape from the file
        shape = value.shape if lazy else own[name].shape
        if value.shape != shape:
            shapes = f"shape {toml_value(tuple(value.shape))}, and that of the network {toml_value(tuple(shape))}"
            raise UserError(f"{wrong} its {name} has {shapes}")
    module.load_state_dict(found, strict=False)
    return module


def unused(module: Any) -> set[str]:
    """Names of the running statistics that a run does not use: of normalisation layers that are trained."""
    trained = [part for part in normalising(module) if not frozen(part)]
    fronts = [front for front, part in module.named_modules() if part in trained]
    return {f"{front}.{name}".removeprefix(".") for front in fronts for name in STATISTICS}


def start(module: Any, path: str) -> Array:
    """The trained parameters (n,) in the file, in double precision, where the module itself may have rounded them."""
    # read again and not taken from the module, which is in single precision mostly
    found = state(path)
    trained = [name for name, p in module.named_parameters() if p.requires_grad]
    return np.concatenate([np.zeros(0), *(found[name].double().numpy().ravel() for name in trained)])


def drawn(make: Callable[[], Any], path: str | None, shape: tuple[int, ...], integers: bool) -> Any:
    """The module of a run: frozen random parameters have the seed 0, trained normalisation no running statistics."""
    torch = pytorch()
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.random.manual_seed(0)
        module = pretrained(make(), path).eval()
        module(zeros(module, (2, *shape), integers))  # sizes of lazy layers
    # after the pass: a lazy layer of normalisation is one only once it knows its channels
    Normalisation(module)
    return module


def put(module: Any, x: Array) -> Any:
    """``module`` in the precision of x (n,), which are its trained parameters; on the CPU, in evaluation mode."""
    torch = pytorch()
    flat = torch.from_numpy(np.array(x))
    module = module.to("cpu", flat.dtype).eval()
    trained = [p for p in module.parameters() if p.requires_grad]
    with torch.no_grad():
        for p, part in zip(trained, flat.split([p.numel() for p in trained]), strict=True):
            p.copy_(part.view(p.shape))
    return module


class Training(Problem):
    """Options of problems with a network."""

    pretrained: Annotated[
        str | None,
        Meta(description="file of torch.save(module.state_dict()), or of safetensors, with the first parameters"),
    ] = None
    augment: Annotated[
        str | tuple[str, ...],
        Meta(description="random changes of mini-batches: flip, crop, path.py:function of (samples, generator)"),
    ] = ()
    padding: Annotated[int, Meta(ge=1, description="pixels of zeros around an image that crop cuts from")] = 4

    autocast: Annotated[
        Literal["float16", "bfloat16"] | None,
        Meta(description="half precision for the layers that torch.autocast names; float16: on a GPU alone"),
    ] = None

    @abstractmethod
    def sample(self, n: int) -> tuple[int, ...]:
        """The shape of a sample with n features."""

    def begun(self, net: Any, data: Dataset) -> Array:
        """The first parameters of a network (n,). UserError or ValueError where options do not go with the data."""
        if self.augments():
            self._changes(data.n).check(data.sparse)
        return net.start if self.pretrained is None else start(net.module, self.pretrained)

    def augments(self) -> bool:
        return bool(self.augment)

    def augmented(self, A: Any, counts: Sequence[int], rngs: Sequence[np.random.Generator]) -> Any:
        return self._changes(A.shape[-1]).changed(A, counts, rngs)

    def _changes(self, n: int) -> Images:
        """The changes of samples with n features, in order."""
        return Images(np.atleast_1d(self.augment).tolist(), self.padding, self.sample(n))
