"""Linear models on a GPU: scores, gradients, local steps and sums of all clients of a block, each in one launch.

What a caller has to know:

- Arrays are on the device: anything with ``__cuda_array_interface__``, such as tensors of torch. Under numba's
  simulator (NUMBA_ENABLE_CUDASIM=1) they are numpy arrays. They are contiguous and have the type of numbers of the
  ``Device``, in which all is computed.
- Results and scratch are made by ``Device.empty(shape)``, which the caller gives, such as a torch.empty with type and
  device. Numba allocates nothing, which would stop the device.
- Launches return at once. They are put on ``Device.stream``, in which ``empty`` has to give memory: 0 is the default
  stream, which is torch's too; another one is ``torch.cuda.current_stream().cuda_stream``.
- The bits of a client depend on its numbers and on the model alone: not on c, nor on its place among the others, nor on
  rows of padding (b = w = 0), nor on where its numbers are kept. Additions have a fixed order, and no product is merged
  with an addition. So the simulator should have the bits of a device; numpy's and those of the kernels for CPUs differ
  from them in the last places.
- Kernels are compiled at their first launch in a process.
- What does not go together is a ValueError, before anything is launched.
- Sums over clients are in ``tree``. Products A_iᵀ diag(p_i) A_i v_i are gradients of a linear residual with weights p
  and b = s = 0.

Letters: c clients with D rows each, f features, C classes (1 for a linear model), n components of a model.
"""

from typing import Any, Literal, NamedTuple

import numpy as np

from mpifed.data.cuda import linear
from mpifed.data.cuda.device import Device
from mpifed.data.cuda.layout import Layout, Shape, indexed, layout, stride

RESIDUALS = {"linear": linear.LINEAR, "logistic": linear.LOGISTIC, "softmax": linear.SOFTMAX}
PENALTIES = {"ridge": linear.RIDGE, "bounded": linear.BOUNDED}


class Model(NamedTuple):
    """f_i(x) = Σ_j w_j ℓ(⟨a_j, x⟩, b_j) + s_i·penalty(x), as in mpifed.problems.

    ``residual`` names ∂ℓ/∂z: z − b, 1/(1 + e^−z) − b, or softmax(z) − [k = b], with models [W (C × f) | bias (C)].
    ``penalty`` is ‖x‖²/2 (ridge) or Σ x²/(1 + x²)/2 (bounded), without the bias.
    """

    residual: Literal["linear", "logistic", "softmax"]
    penalty: Literal["ridge", "bounded"] = "ridge"
    classes: int = 1
    bias: bool = False


class Clients(NamedTuple):
    """The samples of c clients, as ``Kernels.clients`` makes them."""

    arrays: tuple[Any, ...]  # kept, for kernels have but pointers to them
    pointers: linear.Samples
    shape: Shape
    plan: Layout
    c: int
    who: Any = None  # positions of these clients among the samples, on the device


class Kernels:
    """The kernels of a model on a device."""

    def __init__(self, model: Model, device: Device) -> None:
        self.model = model
        self.device = device

    def clients(self, A: Any, b: Any, w: Any, s: Any) -> Clients:
        """Clients with features A (c, D, f), labels b (c, D), weights w (c, D) and factors of the regulariser s (c,).

        The arrays are kept, not copied. Samples that stay the same are given here once.
        """
        count, rows, features = A.shape
        model = self.model.classes * (features + self.model.bias)
        for name, array, expected in (("b", b, (count, rows)), ("w", w, (count, rows)), ("s", s, (count,))):
            if tuple(array.shape) != expected:
                raise ValueError(f"{name} {tuple(array.shape)} does not go with A {tuple(A.shape)}")
        shape = Shape(rows, features, self.model.classes, model)
        if not indexed(shape):
            raise ValueError(f"A {tuple(A.shape)} has too many numbers for each client: indices have 32 bits")
        pointers = (self.device.pointer(array, name) for name, array in zip("Abws", (A, b, w, s), strict=True))
        return Clients((A, b, w, s), linear.Samples(*pointers), shape, layout(shape, self.device.dtype.itemsize), count)

    def pick(self, clients: Clients, who: Any, s: Any) -> Clients:
        """Those at positions ``who`` among all, whole numbers (c,) of 64 bits on the device; nothing is copied.

        ``s`` (c,) are their factors of the regulariser. The other arrays of a launch then have a row for each of these
        too. Positions that do not exist are not found out.
        """
        if tuple(s.shape) != tuple(who.shape):
            raise ValueError(f"s {tuple(s.shape)} does not go with who {tuple(who.shape)}")
        arrays = (*clients.arrays[:3], s)
        pointers = clients.pointers._replace(s=self.device.pointer(s, "s"))
        return clients._replace(arrays=arrays, pointers=pointers, c=who.shape[0], who=who)

    def gradients(self, clients: Clients, X: Any) -> tuple[Any, Any]:
        """Scores (c, D), or (c, D, C) of softmax, and gradients (c, n) at X, (n,) or (c, n)."""
        shape = clients.shape
        many = self.model.residual == "softmax"
        Z = self.device.empty((clients.c, shape.rows, shape.classes)[: 2 + many])
        G = self.device.empty((clients.c, shape.model))
        self._launch("gradients", clients, {"x": (X, shape.model)}, G, Z)
        return Z, G

    def steps(
        self, clients: Clients, X: Any, gamma: Any, correction: Any = None, pull: Any = None, anchor: Any = None
    ) -> Any:
        """w (c, n) after the steps w ← w − γ_j (∇f_i(w) + correction_i + pull_i (w − anchor_i)), from w = x_i.

        ``gamma`` (k0,) or (c, k0), one for each step; a client rests in a step with γ = 0. X and ``anchor``, which is X
        where it is not given, (n,) or (c, n). ``correction`` (n,) or (c, n). ``pull`` (1,) or (c, 1).
        """
        n = clients.shape.model
        W = self.device.empty((clients.c, n))
        terms = {"x": (X, n), "gamma": (gamma, gamma.shape[-1])}
        if correction is not None:
            terms["correction"] = (correction, n)
        if pull is not None:
            terms["pull"] = (pull, 1)
            terms["anchor"] = (X if anchor is None else anchor, n)
        self._launch("steps", clients, terms, W)
        return W

    def _launch(self, which: str, clients: Clients, terms: dict[str, tuple[Any, int]], out: Any, Z: Any = None) -> None:
        shape, plan = clients.shape, clients.plan
        own = {name: self._own(clients, name, *term) for name, term in terms.items()}
        arrays = {name: array for name, (array, _) in terms.items()} | {"out": out}
        if Z is not None:
            arrays["Z"] = Z
        if not plan.near:
            arrays["room"] = self.device.empty(out.shape)
        found = {name: self.device.pointer(array, name) for name, array in arrays.items()}
        nothing = self.device.nothing()
        vectors = linear.Vectors(*(found.get(name, nothing) for name in linear.Vectors._fields))
        sizes = linear.Sizes(
            **shape._asdict(),
            cut=shape.classes * shape.features,
            **{name: getattr(plan, name) for name in ("lanes", "parts", "chunk", "near", "span")},
            across=(1 << plan.span) - 1,
            stride=stride(shape.features),
            residual=RESIDUALS[self.model.residual],
            penalty=PENALTIES[self.model.penalty],
            steps=terms["gamma"][1] if "gamma" in terms else 0,
            **{f"own_{name}": own.get(name, 0) for name in ("x", "gamma", "correction", "anchor", "pull")},
            corrected="correction" in terms,
            pulled="pull" in terms,
            scored=0 if Z is None else shape.rows * shape.classes,
            picked=clients.who is not None,
        )
        name = f"{which}_{'staged' if plan.staged else 'placed'}"
        who = nothing if clients.who is None else self.device.pointer(clients.who, "who", np.int64)
        self.device.launch(name, clients.c, (plan.threads, plan.shared), (sizes, clients.pointers, vectors, who))

    def _own(self, clients: Clients, name: str, array: Any, width: int) -> int:
        """How far a client's numbers are from the next one's: 0 where all clients have the same."""
        found = tuple(array.shape)
        if found not in ((width,), (clients.c, width)):
            raise ValueError(f"{name} {found} must be ({width},) or ({clients.c}, {width})")
        return width if len(found) == 2 else 0
