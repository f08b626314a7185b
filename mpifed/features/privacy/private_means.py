"""Table [privacy]: means of clipped changes with noise, which protect all data of a client."""

from typing import Annotated, Literal

from msgspec import Meta

from mpifed.algorithms.bases.algorithm import Privacy
from mpifed.core.component import StudyTable
from mpifed.core.typing import PositiveFloat
from mpifed.features.privacy.mechanisms import GaussianNoise, Mechanism

LEAST_BOUND, LARGEST_BOUND = 1e-60, 1e60  # squares of lengths, and noise, are then numbers of double precision
ClipBound = Annotated[float, Meta(gt=0, le=LARGEST_BOUND)]
LEAST_NOISE = 1e-20  # the least noise multiplier but 0


class PrivateMeans(StudyTable, kw_only=True):
    """Private means: clients clip the change of the model that they upload, and the sum of a round gets noise.

    With Δ_i what a client uploads (less the model that it was sent, if it uploads a model), S the clients of a round,
    C = clip, z = noise_multiplier and w_i their weights, 1 without objective.weights,

        Δ_i ← Δ_i min(1, C/‖Δ_i‖),    mean = (Σ_S w_i Δ_i + N(0, (z C max w_i)²))/D,

    where all arrays of an upload are one vector. D is the number of clients that is expected, m times
    selection.share where selection is "poisson", else the number selected; with weights what they are expected to add
    up to. per = "layer" clips each of L layers of a network to C/√L. Weights above max_weight are cut to it.

    With ``quantile`` = γ the bound C, at first clip, follows the share b of clients that are not clipped:
    C ← C exp(−clip_rate (b − γ)), b = ½ + (Σ_S (1[‖Δ_i‖ <= C] − ½) + N(0, σ²))/D, σ = count_noise, and Δ has the noise
    of the multiplier (z⁻² − (2σ)⁻²)^(−½), so that both sums together cost what z costs.

    Sources: of means H. B. McMahan et al., arXiv:1710.06963 (2018); of the bound G. Andrew et al., arXiv:1905.03871
    (2021). A model that is trained so is (ε, δ)-private for all data of a client to those who see models alone, and
    know neither the noise nor who was selected; columns epsilon_pld and epsilon_rdp say which ε was spent so far.
    """

    clip: Annotated[ClipBound, Meta(description="bound C of ‖Δ_i‖₂, with quantile the first one")] = 1.0
    noise_multiplier: Annotated[
        Annotated[float, Meta(ge=0, le=1e6)] | None,
        Meta(description="standard deviation z of the noise of a sum over clip (times the largest weight); 0: none"),
    ] = None
    epsilon: Annotated[
        PositiveFloat | None, Meta(description="ε of all rounds together, from which z follows, in place of it")
    ] = None
    delta: Annotated[float, Meta(gt=0, lt=1, description="δ at which ε is computed")] = 1e-5
    per: Annotated[
        Literal["model", "layer"], Meta(description="what is clipped at a time: all that a client sends, or each layer")
    ] = "model"
    quantile: Annotated[
        Annotated[float, Meta(gt=0, lt=1)] | None,
        Meta(description="share γ of clients that the bound leaves as they are (default: the bound stays)"),
    ] = None
    clip_rate: Annotated[PositiveFloat, Meta(description="rate at which the bound follows its quantile")] = 0.2
    count_noise: Annotated[
        Annotated[float, Meta(ge=0, le=1e6)] | None,
        Meta(description="standard deviation σ of the noise of the clients that are counted (default: D/20)"),
    ] = None
    max_weight: Annotated[
        ClipBound | None,
        Meta(description="largest weight w_i of a client, whose mean over all clients is 1 (default: the largest)"),
    ] = None
    mechanism: Annotated[Mechanism, Meta(description="how the sum gets its noise")] = GaussianNoise()
    noise_seed: Annotated[
        Annotated[int, Meta(ge=0, le=2**63 - 1)] | None,
        Meta(
            description="seed of the noise, for runs that can be repeated: who knows it can subtract the noise, so "
            "nothing is guaranteed (default: the system's entropy)"
        ),
    ] = None

    def __post_init__(self) -> None:
        if (self.noise_multiplier is None) == (self.epsilon is None):
            has = "both noise_multiplier and epsilon" if self.epsilon else "neither noise_multiplier nor epsilon"
            raise ValueError(f"it has {has}, and it must have one of them")
        for name, least in {"clip": LEAST_BOUND, "max_weight": LEAST_BOUND, "noise_multiplier": LEAST_NOISE}.items():
            if 0 < (getattr(self, name) or 0.0) < least:
                raise ValueError(f"{name} = {getattr(self, name):g} is wrong: it must be at least {least:g}")
        if self.quantile is None and self.count_noise is not None:
            raise ValueError(f"count_noise = {self.count_noise} is wrong without quantile: nothing is counted")
        if self.quantile is not None and self.per == "layer":
            raise ValueError('per = "layer" is wrong with quantile, which moves one bound: it must be "model"')

    def guarantee(self) -> Privacy:
        """Return the guarantee of the means, or why there is none."""
        if self.noise_multiplier == 0:
            return Privacy(False, "privacy.noise_multiplier = 0, and clipped changes without noise are exact numbers")
        if self.noise_seed is not None:
            return Privacy(
                False,
                f"whoever knows privacy.noise_seed = {self.noise_seed} can subtract the noise; epsilon columns "
                "are those of the same run with noise of the system's entropy",
            )
        text = (
            f"models are (ε, {self.delta:g})-private for all data of a client, to those who see models alone: "
            f"{self.mechanism.spent}"
        )
        return Privacy(True, text, clients=True, central=True)
