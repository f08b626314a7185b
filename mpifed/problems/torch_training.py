"""Options of a training loop of torch: first parameters from a file, augmentation, half precision."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Annotated, Any, Literal

import numpy as np
from msgspec import Meta

from mpifed.core.typing import Array
from mpifed.data.base import Dataset
from mpifed.problems import torch_state
from mpifed.problems.base import Problem
from mpifed.problems.torch_augment import Images


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
        return net.start if self.pretrained is None else torch_state.start(net.module, self.pretrained)

    def augments(self) -> bool:
        return bool(self.augment)

    def augmented(self, A: Any, counts: Sequence[int], rngs: Sequence[np.random.Generator]) -> Any:
        return self._changes(A.shape[-1]).changed(A, counts, rngs)

    def _changes(self, n: int) -> Images:
        """The changes of samples with n features, in order."""
        names = (self.augment,) if isinstance(self.augment, str) else self.augment
        return Images(names, self.padding, self.sample(n))
