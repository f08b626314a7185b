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
from mpifed.kernels.torch_device import error_line, import_torch
from mpifed.networks.torch_augment import Images
from mpifed.networks.torch_layers import Normalisation, is_frozen, normalisation_layers, zero_samples
from mpifed.problems.problem import Problem

LISTED = 3  # most names in a message
STATISTICS = ("running_mean", "running_var", "num_batches_tracked")  # buffers of normalisation layers


def read_state(path: str) -> dict[str, Any]:
    """Read a file of torch.save(module.state_dict()) or of safetensors: tensors by name, on the CPU.

    Raise UserError if there is no such file, or something else in it. With weights_only=True no code in it runs.
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
            load = partial(import_torch().load, map_location="cpu", weights_only=True)
        tensors = load(file)
    except ImportError:
        raise UserError(f"{wrong} it needs safetensors: pip install safetensors") from None
    except Exception as error:  # a file may hold anything
        raise UserError(f"{wrong} it is no file of tensors alone ({error_line(error)[:80]}): {right}") from None
    if not isinstance(tensors, Mapping):
        raise UserError(f"{wrong} it holds a {type(tensors).__name__}, and not tensors by their names: {right}")
    others = [name for name, value in tensors.items() if not import_torch().is_tensor(value)]
    if others or not tensors:
        raise UserError(f"{wrong} it holds {join_names(others) or 'nothing'}, and not tensors alone: {right}")
    return {name: value.detach() for name, value in tensors.items()}


def join_names(names: list[str]) -> str:
    """Return the first names, separated by commas, and how many more there are."""
    more = f" and {len(names) - LISTED} more" if len(names) > LISTED else ""
    return ", ".join(map(str, names[:LISTED])) + more


def load_parameters(module: Any, path: str | None) -> Any:
    """Load the parameters and buffers of the file ``path``, if there is one, into ``module``; return the module.

    Names and shapes have to match, but running statistics of trained normalisation layers may be absent, as they are
    not used. Raise UserError if names or shapes do not match.
    """
    if path is None:
        return module
    tensors = read_state(path)
    current = module.state_dict()
    wrong = f"problem.pretrained = {toml_value(path)} is wrong:"
    missing = [name for name in current if name not in tensors and name not in unused_statistics(module)]
    if missing:
        raise UserError(f"{wrong} it lacks {join_names(missing)} of the network")
    more = [name for name in tensors if name not in current]
    if more:
        raise UserError(f"{wrong} it has {join_names(more)}, which the network does not have")
    for name, value in tensors.items():
        lazy = import_torch().nn.parameter.is_lazy(current[name])  # a lazy layer gets its shape from the file
        shape = value.shape if lazy else current[name].shape
        if value.shape != shape:
            shapes = f"shape {toml_value(tuple(value.shape))}, and that of the network {toml_value(tuple(shape))}"
            raise UserError(f"{wrong} its {name} has {shapes}")
    module.load_state_dict(tensors, strict=False)
    return module


def unused_statistics(module: Any) -> set[str]:
    """Return the names of the running statistics that a run does not use: of trained normalisation layers."""
    trained = [part for part in normalisation_layers(module) if not is_frozen(part)]
    fronts = [front for front, part in module.named_modules() if part in trained]
    return {f"{front}.{name}".removeprefix(".") for front in fronts for name in STATISTICS}


def read_parameters(module: Any, path: str) -> Array:
    """Read the trained parameters (n,) from the file, in double precision, as the module may have rounded them."""
    # not taken from the module, which is mostly in single precision
    tensors = read_state(path)
    trained = [name for name, p in module.named_parameters() if p.requires_grad]
    return np.concatenate([np.zeros(0), *(tensors[name].double().numpy().ravel() for name in trained)])


def build_module(make: Callable[[], Any], path: str | None, shape: tuple[int, ...], integers: bool) -> Any:
    """Build the module of a run: frozen random parameters have the seed 0, running statistics are dropped."""
    torch = import_torch()
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.random.manual_seed(0)
        module = load_parameters(make(), path).eval()
        module(zero_samples(module, (2, *shape), integers))  # gives lazy layers their sizes
    # after the pass: a lazy layer becomes one of normalisation once it knows its channels
    Normalisation(module)
    return module


def put_parameters(module: Any, x: Array) -> Any:
    """Set the trained parameters of ``module`` to x (n,), in its precision; on the CPU, in evaluation mode."""
    torch = import_torch()
    flat = torch.from_numpy(np.array(x))
    module = module.to("cpu", flat.dtype).eval()
    trained = [p for p in module.parameters() if p.requires_grad]
    with torch.no_grad():
        for p, part in zip(trained, flat.split([p.numel() for p in trained]), strict=True):
            p.copy_(part.view(p.shape))
    return module


class Training(Problem):
    """The options of problems with a network."""

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
    def sample_shape(self, n: int) -> tuple[int, ...]:
        """Return the shape of a sample with n features."""

    def first_parameters(self, net: Any, data: Dataset) -> Array:
        """Return the first parameters (n,); raise UserError or ValueError if options do not fit the data."""
        if self.augments():
            self._changes(data.n).check(data.sparse)
        return net.start if self.pretrained is None else read_parameters(net.module, self.pretrained)

    def augments(self) -> bool:
        return bool(self.augment)

    def augment_samples(self, A: Any, counts: Sequence[int], rngs: Sequence[np.random.Generator]) -> Any:
        return self._changes(A.shape[-1]).change(A, counts, rngs)

    def _changes(self, n: int) -> Images:
        """Return the changes of samples with n features, in order."""
        return Images(np.atleast_1d(self.augment).tolist(), self.padding, self.sample_shape(n))
