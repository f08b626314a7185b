"""Options of a training loop of torch: first parameters from a file, half precision, and changes of samples.

Changes of mini-batches draw from each client's own random stream.
"""

import os
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple

import numpy as np
from msgspec import Meta

from mpifed.core.arrays import namespace
from mpifed.core.errors import error_line
from mpifed.core.toml import toml_value, wrong_value
from mpifed.core.typing import Array
from mpifed.data.dataset import Dataset
from mpifed.kernels.torch_device import import_torch
from mpifed.networks.torch_layers import Normalisation, is_frozen, normalisation_layers, zero_samples
from mpifed.networks.torch_losses import load_function
from mpifed.problems.problem import Problem

LISTED = 3  # most names in a message
STATISTICS = ("running_mean", "running_var", "num_batches_tracked")  # buffers of normalisation layers
BUILT_IN = ("flip", "crop")


class Images(NamedTuple):
    """The changes of samples, in order, and what they need to know of samples.

    A change gets the samples A (c, B, *shape) of a block, arrays or tensors, the number of samples of each client (c,),
    and the random streams of the clients; padding behind the samples may become anything.
    """

    names: Sequence[str]
    padding: int
    shape: tuple[int, ...]

    def check(self, sparse: bool) -> None:
        """Raise UserError for a missing function, ValueError for samples that are ``sparse`` or no images."""
        if sparse:
            raise ValueError("augment is for dense samples, and these are a sparse matrix")
        for name in self.names:
            if name not in BUILT_IN:
                load_function("augment", name, BUILT_IN)
            elif len(self.shape) != 3:
                raise ValueError(
                    f"augment = {toml_value(name)} is for images, and samples have the shape {toml_value(self.shape)}: "
                    "write shape = [channels, height, width]"
                )

    def change(self, A: Any, counts: Sequence[int], rngs: Sequence[np.random.Generator]) -> Any:
        """Return the samples A (c, B, n) after all changes."""
        samples = A.reshape(*A.shape[:2], *self.shape)
        for name in self.names:
            change: Any = {"flip": self.flip, "crop": self.crop}.get(name) or UserAugmentation(name)
            samples = change(samples, counts, rngs)
        return samples.reshape(A.shape)

    def flip(self, A: Any, counts: Sequence[int], rngs: Sequence[np.random.Generator]) -> Any:
        """Mirror each image, left and right, with probability 1/2."""
        # a client draws nothing for padding: the draws would then depend on the other clients in the block
        drawn = np.zeros(A.shape[:2], bool)
        for row, count, rng in zip(drawn, counts, rngs, strict=True):
            row[:count] = rng.random(count) < 0.5
        columns = np.arange(A.shape[-1])
        index = np.where(drawn[:, :, None], columns[::-1], columns)
        return pick_pixels(A, np.arange(A.shape[-2])[None, None], index)

    def crop(self, A: Any, counts: Sequence[int], rngs: Sequence[np.random.Generator]) -> Any:
        """Pad each image with ``padding`` zeros on all sides, and cut it to its size at a random position."""
        height, width = A.shape[-2:]
        drawn = np.full((*A.shape[:2], 2), self.padding)
        for row, count, rng in zip(drawn, counts, rngs, strict=True):
            row[:count] = rng.integers(0, 2 * self.padding + 1, (count, 2))
        padded = pad_images(A, self.padding)
        return pick_pixels(padded, drawn[:, :, :1] + np.arange(height), drawn[:, :, 1:] + np.arange(width))


class UserAugmentation:
    """A user's function, called for each client with its samples (k, *shape) and a torch.Generator.

    PyTorch's own generator gets the same seed: functions that take no generator, such as those of torchvision, also
    give the same samples on any number of ranks.
    """

    def __init__(self, name: str) -> None:
        self.wrong = partial(wrong_value, "problem.augment", name)
        self.function = load_function("augment", name, BUILT_IN)

    def __call__(self, A: Any, counts: Sequence[int], rngs: Sequence[np.random.Generator]) -> Any:
        torch = import_torch()
        result = A.clone() if torch.is_tensor(A) else A.copy()
        for i, (count, rng) in enumerate(zip(counts, rngs, strict=True)):
            if count:
                # a clone, because a function may change its samples in place, and they are the client's data
                samples = torch.as_tensor(A[i, :count])
                changed = self.apply(samples.clone(), int(rng.integers(2**63))).to(samples)
                result[i, :count] = changed if torch.is_tensor(A) else changed.numpy()
        return result

    def apply(self, samples: Any, seed: int) -> Any:
        """Apply the function to the samples of a client; raise UserError if it returns no such samples."""
        torch = import_torch()
        # afterwards the generators of the calling program go on as if nothing had been drawn; without
        # ``devices`` PyTorch would initialise every GPU of the node
        gpus = [samples.device] if samples.is_cuda else []
        with torch.random.fork_rng(devices=gpus), torch.no_grad():
            torch.random.manual_seed(seed)
            try:
                changed = self.function(samples, torch.Generator().manual_seed(seed))
            except Exception as error:  # the user's code may raise anything
                raise self.wrong(f"it fails on {len(samples)} samples: {error_line(error)}") from None
        shape = getattr(changed, "shape", None)
        if not torch.is_tensor(changed) or shape != samples.shape:
            given = f"a {type(changed).__name__}" if shape is None else f"an array {toml_value(tuple(shape))}"
            taken = toml_value(tuple(samples.shape))
            raise self.wrong(f"it makes {given} of samples {taken}: it must return a tensor of that shape")
        return changed


def pad_images(A: Any, by: int) -> Any:
    """Return A (c, B, channels, height, width) with ``by`` zeros on all sides of the images."""
    *front, height, width = A.shape
    padded = namespace(A).zeros((*front, height + 2 * by, width + 2 * by), dtype=A.dtype)
    padded[..., by : by + height, by : by + width] = A
    return padded


def pick_pixels(A: Any, rows: Array, columns: Array) -> Any:
    """Return pixels of images A (c, B, channels, …) at ``rows`` (c, B, h) and ``columns`` (c, B, w), in order."""
    c, B, channels = A.shape[:3]
    index = [np.arange(c)[:, None, None, None, None], np.arange(B)[:, None, None, None]]
    index += [np.arange(channels)[:, None, None], rows[:, :, None, :, None], columns[:, :, None, None, :]]
    return A[tuple(map(namespace(A).asarray, index))]


def read_state(path: str) -> dict[str, Any]:
    """Read a file of torch.save(module.state_dict()) or of safetensors: tensors by name, on the CPU.

    Raise UserError if there is no such file, or something else in it. With weights_only=True no code in it runs.
    """
    file = os.path.expanduser(path)
    wrong = partial(wrong_value, "problem.pretrained", path)
    if not os.path.isfile(file):
        raise wrong("there is no such file")
    right = "save it with torch.save(module.state_dict(), PATH)"
    try:
        if file.endswith(".safetensors"):
            from safetensors.torch import load_file as load
        else:
            load = partial(import_torch().load, map_location="cpu", weights_only=True)
        tensors = load(file)
    except ImportError:
        raise wrong("it needs safetensors: pip install safetensors") from None
    except Exception as error:  # a file may hold anything
        raise wrong(f"it is no file of tensors alone ({error_line(error)[:80]}): {right}") from None
    if not isinstance(tensors, Mapping):
        raise wrong(f"it holds a {type(tensors).__name__}, and not tensors by their names: {right}")
    others = [name for name, value in tensors.items() if not import_torch().is_tensor(value)]
    if others or not tensors:
        raise wrong(f"it holds {join_names(others) or 'nothing'}, and not tensors alone: {right}")
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
    wrong = partial(wrong_value, "problem.pretrained", path)
    missing = [name for name in current if name not in tensors and name not in unused_statistics(module)]
    if missing:
        raise wrong(f"it lacks {join_names(missing)} of the network")
    more = [name for name in tensors if name not in current]
    if more:
        raise wrong(f"it has {join_names(more)}, which the network does not have")
    for name, value in tensors.items():
        lazy = import_torch().nn.parameter.is_lazy(current[name])  # a lazy layer gets its shape from the file
        shape = value.shape if lazy else current[name].shape
        if value.shape != shape:
            shapes = f"shape {toml_value(tuple(value.shape))}, and that of the network {toml_value(tuple(shape))}"
            raise wrong(f"its {name} has {shapes}")
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
