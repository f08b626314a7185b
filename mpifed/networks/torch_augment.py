"""Random changes of the samples of mini-batches, with random numbers from each client's own stream."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mpifed.core import plugins
from mpifed.core.arrays import namespace
from mpifed.core.errors import UserError
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array
from mpifed.kernels.torch_device import error_line, import_torch

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
                load_function(name)
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
        self.wrong = f"problem.augment = {toml_value(name)} is wrong:"
        self.function = load_function(name)

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
                raise UserError(f"{self.wrong} it fails on {len(samples)} samples: {error_line(error)}") from None
        shape = getattr(changed, "shape", None)
        if not torch.is_tensor(changed) or shape != samples.shape:
            given = f"a {type(changed).__name__}" if shape is None else f"an array {toml_value(tuple(shape))}"
            taken = toml_value(tuple(samples.shape))
            raise UserError(f"{self.wrong} it makes {given} of samples {taken}: it must return a tensor of that shape")
        return changed


def load_function(name: str) -> Callable[[Any, Any], Any]:
    """Return the user's function; raise UserError if there is none."""
    try:
        function: Callable[[Any, Any], Any] = plugins.load_class(name, "function", Callable)
    except ValueError as error:
        right = "" if ":" in name else f"; built in are {' and '.join(BUILT_IN)}"
        raise UserError(f"problem.augment = {toml_value(name)} is wrong: {error}{right}") from None
    return function


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
