"""A PyTorch module as a function of one flat parameter vector and samples; torch is imported when one is built."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mpifed.core.errors import UserError, error_line
from mpifed.core.memory import keep_freed_memory
from mpifed.core.processor import network_threads
from mpifed.core.toml import toml_value
from mpifed.core.typing import Array
from mpifed.kernels.torch_device import choose_device, import_torch
from mpifed.networks import torch_layers
from mpifed.networks.torch_losses import Loss


def make_forward(name: str | None, device: Any) -> Callable[..., Any]:
    """Return torch.func.functional_call, under torch.autocast to the type ``name`` if there is one.

    Scores and gradients come back in single precision, which parameters have. Tensors on another device than
    ``device``, with which a module is tried, are computed in single precision. Raise UserError for float16 on a CPU.
    """
    torch = import_torch()
    functional_call: Callable[..., Any] = torch.func.functional_call
    if name is None:
        return functional_call
    if name == "float16" and device.type == "cpu":
        raise UserError(
            'problem.autocast = "float16" is wrong on a CPU: it must be "bfloat16" there, or problem.device = "cuda"'
        )

    def call(module: Any, P: dict[str, Any], inputs: tuple[Any, ...]) -> Any:
        half = inputs[0].device.type == device.type
        # its cache of parameters is off, because it would outlive the transformations of torch.func
        with torch.autocast(device.type, getattr(torch, name), enabled=half, cache_enabled=False):
            return functional_call(module, P, inputs).float()

    return call


class NetworkOptions(NamedTuple):
    """The options that a network is built with."""

    shape: tuple[int, ...]  # of a sample
    integers: bool  # whether samples are whole numbers
    loss: Loss
    lam: float
    device: str
    autocast: str | None = None  # half-precision type, for the layers that allow it


class ModuleFunction:
    """The loss of a module as a function of its trained parameters x (n,) and the samples of a client.

    ``start`` (n,): initial parameters, drawn from ``seed``. ``output``: shape of the output for two samples. Frozen
    parameters and buffers are constants. Building it raises UserError if module or loss is no function of x and the
    samples, and ValueError if the module cannot take the samples.
    """

    def __init__(self, make: Callable[[], Any], options: NetworkOptions, seed: int) -> None:
        self.torch = import_torch()
        self.options = options
        self.device = choose_device(options.device)
        self.forward = make_forward(options.autocast, self.device)
        self.torch.set_num_threads(network_threads())
        keep_freed_memory()
        with self.seed_generators(seed), self.torch.no_grad():
            self.module = make().eval()
            self.masks = torch_layers.replace_dropout(self.module)
            self.output = self._output_shape()
            torch_layers.check_parameters(self.module)
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
        # one call with a graph: a forward under torch.no_grad would give zero gradients without any error
        with self.torch.enable_grad():
            scores = self._call({name: p.detach().requires_grad_() for name, p in named.items()}, self._zeros(2))
        if named and not scores.requires_grad:
            wrong = "its forward must not run under torch.no_grad, nor on tensors that are detached"
            raise UserError(f"the scores of the network have no gradient: {wrong}")

    def _output_shape(self) -> tuple[int, ...]:
        """Return the shape of the output for two samples of zeros; raise ValueError if the module fails."""
        try:
            scores = self.module(self._zeros(2))
        except Exception as error:  # the user's code may raise anything
            advice = "; write problem.integers = true where they are whole numbers, such as the numbers of words"
            hint = advice if torch_layers.embedding_layers(self.module) else ""
            shape = toml_value(self.options.shape)
            raise ValueError(f"the network does not take samples of shape {shape}: {error_line(error)}{hint}") from None
        torch_layers.require_tensor(scores, "")
        return tuple(scores.shape)

    def _check_calls(self) -> None:
        """Call the module with a few samples; raise UserError if it remembers them, ValueError for no tensor."""
        # f_i is no function of x in networks that count their calls or keep means of their inputs
        before = torch_layers.buffer_versions(self.module)
        self.takes_one_sample = True
        for train in (False, True):
            self.norms.set_mode(self.module, train)
            self.trial_output = self._call({}, self._zeros(2))
            torch_layers.require_tensor(self.trial_output, " in training mode" if train else "")
            try:
                self._call({}, self._zeros(1))
            except UserError:
                self.takes_one_sample = False
        torch_layers.refuse_changed_buffers(before, torch_layers.buffer_versions(self.module))

    @cached_property
    def mean(self) -> bool:
        """True if the loss is a mean over the samples; raises UserError if the loss cannot be used."""
        dtype = self.torch.int64 if self.options.loss.targets == "classes" else self.trial_output.dtype
        return self.options.loss.is_mean(self.trial_output, self.torch.zeros(2, dtype=dtype))

    def _zeros(self, count: int) -> Any:
        """Return ``count`` samples of zeros."""
        return torch_layers.zero_samples(self.module, (count, *self.options.shape), self.options.integers)

    def loss(self, P: dict[str, Any], constants: dict[str, Any], samples: Any, b: Any, w: Any) -> tuple[Any, Any]:
        """Return Σ_j w_j · loss of sample j, and the scores (k, …)."""
        scores = self._call(P | constants, samples)
        try:
            return self.options.loss.of(scores, b, w), scores
        except Exception as error:  # the user's code may raise anything
            raise self.options.loss.wrong(f"it fails on {len(b)} samples of a client: {error_line(error)}") from None

    def _call(self, P: dict[str, Any], samples: Any) -> Any:
        """Return the scores of samples at parameters P; raise UserError if the module fails."""
        # masks depend on the number of calls in this pass, so the count begins at 0 each time
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
                    '; write last_batch = "merge", so that no single sample is left at the end of an epoch, with a '
                    "batch_size above 1, or batch_size = 0, with which a client takes all its samples at once"
                )
            failed = f"fails on {count} of a client: {error_line(error)}{hint}"
            raise UserError(f"the network of the problem {failed}") from None

    def parameters(self, x: Array) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return x as the tensors of the module, by name, and its constants."""
        flat = self.tensor(x)
        return self.split(flat), self.constants_in(flat.dtype)

    def split(self, flat: Any) -> dict[str, Any]:
        """Return views of a tensor (n,) or (c, n) as the parameters of the module, by name; clients stay in front."""
        parts = flat.split([math.prod(shape) for shape in self.shapes.values()], -1)
        front = flat.shape[:-1]
        return {
            name: part.view((*front, *shape)) for (name, shape), part in zip(self.shapes.items(), parts, strict=True)
        }

    def constants_in(self, dtype: Any) -> dict[str, Any]:
        """Return frozen parameters and buffers on the device; real numbers have the type ``dtype``."""
        if dtype not in self.converted:
            self.converted[dtype] = {
                name: value.to(self.device, dtype if value.is_floating_point() else value.dtype)
                for name, value in self.constants.items()
            }
        return self.converted[dtype]

    def targets(self, b: Array) -> Any:
        """Return labels (k,) as the loss takes them."""
        return self.tensor(b.astype(np.int64) if self.options.loss.targets == "classes" else b)

    def samples(self, A: Array) -> Any:
        """Return samples (k, *shape) as the module takes them."""
        return self.tensor(A.astype(np.int64) if self.options.integers else A).view(-1, *self.options.shape)

    def tensor(self, values: Array) -> Any:
        """Copy an array to the device; a copy has the same memory alignment, and last bits, for every client."""
        return self.torch.tensor(values, device=self.device)

    @contextmanager
    def seed_generators(self, seed: int) -> Iterator[None]:
        """Seed PyTorch's random number generators; restore their state afterwards."""
        gpus = [] if self.device.index is None else [self.device.index]
        with self.torch.random.fork_rng(devices=gpus):
            self.torch.default_generator.manual_seed(seed)  # torch.manual_seed is 100 times slower: it searches devices
            for k in gpus:
                self.torch.cuda.default_generators[k].manual_seed(seed)
            yield
