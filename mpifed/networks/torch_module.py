"""A PyTorch network of the user."""

from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

from msgspec import Meta

from mpifed.core import plugins
from mpifed.core.errors import error_line
from mpifed.core.promises import Supports
from mpifed.core.toml import toml_value, wrong_value
from mpifed.kernels.torch_device import import_torch
from mpifed.networks.torch_problem import TorchProblem


class TorchModule(TorchProblem, tag="torch", kw_only=True):
    """A network of your own: f_i(x) = mean loss of the scores of ``module`` + (lam/2)‖weights‖².

    ``module`` is a class derived from torch.nn.Module, or a function that returns a module; naming it imports its
    file, which runs the file's code. It is called with ``arguments`` and maps samples (d, *shape) to scores (d, C), or
    (d, 1). x holds the parameters that are trained, in the order of named_parameters(). Frozen parameters and buffers
    are constants, the same for all clients and seeds. Batch normalisation uses the statistics of the samples at hand:
    of the mini-batch in a step, of the client's own training samples in evaluation, also for its test samples; no
    statistics travel.
    Dropout is active in the gradients that algorithms use, not in recorded values. Its random numbers follow from the
    run's seed, the client, the round and the local step, so they are the same on any number of ranks.

    Source: FLAME, 2023, arXiv 2311.06756, section V.
    """

    # Clients are computed side by side without mixing, whatever the module: each has weights of its own.
    supports = Supports.EVERYTHING

    module: Annotated[str, Meta(description="package.module:Class or path.py:Class; a function that returns a module")]
    arguments: Annotated[dict[str, Any], Meta(description="keyword arguments of the class")] = {}  # noqa: RUF012
    integers: Annotated[bool, Meta(description="samples are whole numbers (int64), such as the numbers of words")] = (
        False
    )

    def make(self, n: int, classes: int) -> Any:
        wrong = partial(wrong_value, "problem.module", self.module)
        module = import_torch().nn.Module
        try:
            source, name, _ = plugins.parse_reference(self.module)
            factory = plugins.load_class(self.module, "class or function", Callable)
        except ValueError as error:
            raise wrong(str(error)) from None
        if isinstance(factory, module):
            right = "name the class, or a function that returns it"
            raise wrong(f"{name} of {source} is an instance of {type(factory).__name__}: {right}")
        if isinstance(factory, type) and not issubclass(factory, module):
            raise wrong(f"{name} of {source} is not derived from torch.nn.Module")
        try:
            made = factory(**self.arguments)
        except Exception as error:  # the user's code may raise anything
            given = toml_value(self.arguments)
            raise wrong(f"arguments = {given} cannot be used: {error_line(error)}") from None
        if not isinstance(made, module):
            raise wrong(f"{name} of {source} returns no torch.nn.Module, but a {type(made).__name__}")
        return made
