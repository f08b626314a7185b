"""A PyTorch module as a function of one flat parameter vector and samples; torch is imported when one is built."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mpifed.core import threads
from mpifed.core.errors import UserError
from mpifed.core.memory import keep_freed
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array
from mpifed.kernels.torch_device import device_of, first_line, pytorch
from mpifed.networks import torch_dropout, torch_layers
from mpifed.networks.torch_losses import Loss


def forward(name: str | None, device: Any) -> Callable[..., Any]:
    """torch.func.functional_call, under torch.autocast to the type ``name`` where one is given.

    Scores come back in single precision, and so do gradients, because parameters have it. Tensors on another device
    than ``device``, with which a module is tried, are computed in single precision. UserError for float16 on a CPU.
    """
    torch = pytorch()
    plain: Callable[..., Any] = torch.func.functional_call
    if name is None:
        return plain
    if name == "float16" and device.type == "cpu":
        raise UserError(
            'problem.autocast = "float16" is wrong on a CPU: it must be "bfloat16" there, or problem.device = "cuda"'
        )

    def call(module: Any, P: dict[str, Any], inputs: tuple[Any, ...]) -> Any:
        half = inputs[0].device.type == device.type
        # without its cache of parameters, which would outlive the transformations of torch.func
        with torch.autocast(device.type, getattr(torch, name), enabled=half, cache_enabled=False):
            return plain(module, P, inputs).float()

    return call


class Options(NamedTuple):
    """What a network is built for."""

    shape: tuple[int, ...]  # of a sample
    integers: bool  # whether samples are whole numbers
    loss: Loss
    lam: float
    device: str
    autocast: str | None = None  # type of layers that may compute in half precision


class Function:
    """The loss of a module as a function of its trained parameters x (n,) and the samples of a client.

    ``start`` (n,): initial parameters, drawn from ``seed``. ``output``: shape of the output for two samples. ``alone``:
    whether it takes a single sample. Frozen parameters and buffers are constants. UserError for a module or a loss that
    is no function of x and the samples, ValueError where it cannot take the samples.
    """

    def __init__(self, make: Callable[[], Any], options: Options, seed: int) -> None:
        self.torch = pytorch()
        self.options = options
        self.device = device_of(options.device)
        self.forward = forward(options.autocast, self.device)
        self.torch.set_num_threads(threads.of_networks())
        keep_freed()
        with self.seeded(seed), self.torch.no_grad():
            self.module = make().eval()
            self.masks = torch_dropout.replace(self.module)
            self.output = self._output_shape()
            torch_layers.check(self.module)
            self.norms = torch_layers.Normalisation(self.module)
            self._check_calls()
        named = {name: p for name, p in self.module.named_parameters() if p.requires_grad}
        start = {name: p.detach().double().numpy() for name, p in named.items()}
        self.start = np.concatenate([np.zeros(0), *(p.ravel() for p in start.values())])
        self.shapes = {name: p.shape for name, p in start.items()}
        self.weights = np.concatenate([np.zeros(0, bool), *(np.full(p.size, p.ndim > 1) for p in start.values())])
        constants = {name: p.detach() for name, p in self.module.named_parameters() if name not in named}
        self.constants = constants | dict(self.module.named_buffers())
        self.converted: dict[Any, dict[str, Any]] = {}  # dtype of x -> the constants
        # once with a graph: under torch.no_grad in its forward a network would have zero gradients, and say nothing
        with self.torch.enable_grad():
            scores = self._call({name: p.detach().requires_grad_() for name, p in named.items()}, self._zeros(2))
        if named and not scores.requires_grad:
            wrong = "its forward must not run under torch.no_grad, nor on tensors that are detached"
            raise UserError(f"the scores of the network have no gradient: {wrong}")

    def _output_shape(self) -> tuple[int, ...]:
        """The shape of the output for two samples of zeros; ValueError where the module fails."""
        try:
            scores = self.module(self._zeros(2))
        except Exception as error:  # the user's code may raise anything
            whole = "; write problem.integers = true where they are whole numbers, such as the numbers of words"
            hint = whole if torch_layers.embeddings(self.module) else ""
            shape = toml_value(self.options.shape)
            raise ValueError(f"the network does not take samples of shape {shape}: {first_line(error)}{hint}") from None
        torch_layers.refuse_no_tensor(scores, "")
        return tuple(scores.shape)

    def _check_calls(self) -> None:
        """Call the module with a few samples; UserError where it remembers them, ValueError for other scores."""
        # some networks count their calls or keep means of their inputs: with them f_i is no function of x
        before = torch_layers.marks(self.module)
        self.alone = True
        for train in (False, True):
            self.norms.mode(self.module, train)
            self.trial = self._call({}, self._zeros(2))
            torch_layers.refuse_no_tensor(self.trial, " in training mode" if train else "")
            try:
                self._call({}, self._zeros(1))
            except UserError:
                self.alone = False
        torch_layers.refuse_memory(before, torch_layers.marks(self.module))

    @cached_property
    def mean(self) -> bool:
        """Whether the loss is a mean over the samples; UserError where it cannot be used."""
        kind = self.torch.int64 if self.options.loss.targets == "classes" else self.trial.dtype
        return self.options.loss.is_mean(self.trial, self.torch.zeros(2, dtype=kind))

    def _zeros(self, count: int) -> Any:
        return torch_layers.zeros(self.module, (count, *self.options.shape), self.options.integers)

    def loss(self, P: dict[str, Any], constants: dict[str, Any], samples: Any, b: Any, w: Any) -> tuple[Any, Any]:
        """Σ_j w_j · loss of sample j, and the scores (k, …)."""
        scores = self._call(P | constants, samples)
        try:
            return self.options.loss.of(scores, b, w), scores
        except Exception as error:  # the user's code may raise anything
            wrong = f"problem.loss = {toml_value(self.options.loss.name)} is wrong:"
            raise UserError(f"{wrong} it fails on {len(b)} samples of a client: {first_line(error)}") from None

    def _call(self, P: dict[str, Any], samples: Any) -> Any:
        """The scores of samples at parameters P; UserError where the module fails."""
        # a mask is a function of the number of the call in this pass; without this, of all calls since the run began
        for layer in self.masks.values():
            layer.calls = 0
        try:
            return self.forward(self.module, P, (samples,))
        except Exception as error:  # the user's code may raise anything
            count = "one sample" if len(samples) == 1 else f"{len(samples)} samples"
            hint = ""
            if any(word in str(error) for word in ("dtype", "Double", "scalar type")):
                other = "float64" if any(p.dtype == self.torch.float32 for p in P.values()) else "float32"
                hint = f'; write dtype = "{other}" at the top of the study where the module computes in {other}'
            elif self.norms.live or len(samples) == 1:
                hint = (
                    "; take a batch_size with which no client has a mini-batch of one sample, such as 0, with which it "
                    "takes all its samples at once"
                )
            failed = f"fails on {count} of a client: {first_line(error)}{hint}"
            raise UserError(f"the network of the problem {failed}") from None

    def parameters(self, x: Array) -> tuple[dict[str, Any], dict[str, Any]]:
        """x as the tensors of the module, by name, and its constants."""
        flat = self.tensor(x)
        return self.split(flat), self.constants_in(flat.dtype)

    def split(self, flat: Any) -> dict[str, Any]:
        """A tensor (n,) as the parameters of the module, by name."""
        parts = flat.split([math.prod(shape) for shape in self.shapes.values()])
        return {name: part.view(shape) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)}

    def constants_in(self, dtype: Any) -> dict[str, Any]:
        """Frozen parameters and buffers on the device; those that are real numbers in this type."""
        if dtype not in self.converted:
            self.converted[dtype] = {
                name: value.to(self.device, dtype if value.is_floating_point() else value.dtype)
                for name, value in self.constants.items()
            }
        return self.converted[dtype]

    def targets(self, b: Array) -> Any:
        """Labels as the loss takes them: (k,)."""
        return self.tensor(b.astype(np.int64) if self.options.loss.targets == "classes" else b)

    def samples(self, A: Array) -> Any:
        """Samples as the module takes them: (k, *shape)."""
        return self.tensor(A.astype(np.int64) if self.options.integers else A).view(-1, *self.options.shape)

    def tensor(self, values: Array) -> Any:
        """A copy, so that the alignment in memory, which may change the last bits, is the same for every client."""
        return self.torch.tensor(values, device=self.device)

    @contextmanager
    def seeded(self, seed: int) -> Iterator[None]:
        """Seed PyTorch's random number generators; restore their state afterwards."""
        gpus = [] if self.device.index is None else [self.device.index]
        with self.torch.random.fork_rng(devices=gpus):
            self.torch.default_generator.manual_seed(seed)  # torch.manual_seed is 100 times slower: it searches devices
            for k in gpus:
                self.torch.cuda.default_generators[k].manual_seed(seed)
            yield
